#pragma once

#include <string>
#include <string_view>

#include "domain/trace_settings.h"

namespace baton::ports {

// Which requests are traced, and where their traces go. Any thread; never waits for a file. An
// empty model's name is the server's own settings.
class TraceControl {
 public:
  virtual ~TraceControl() = default;
  [[nodiscard]] virtual std::string file() const = 0;  // that the operator named
  // `count` is what is left of it.
  [[nodiscard]] virtual TraceSettings settings(const std::string& model) const = 0;
  [[nodiscard]] virtual TraceOverrides overrides(const std::string& model) const = 0;
  // A count begins anew where it is other than it was.
  virtual void apply(const std::string& model, const TraceOverrides& overrides) = 0;
  // Whether the next request of this model is traced; counts it.
  [[nodiscard]] virtual bool sample(const std::string& model) = 0;
  virtual void write(std::string_view trace) = 0;  // one JSON object
};

}  // namespace baton::ports
