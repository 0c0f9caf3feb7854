#pragma once

#include "domain/log_settings.h"

namespace baton::ports {

// The application log's settings while it writes. Any thread.
class LogControl {
 public:
  virtual ~LogControl() = default;
  [[nodiscard]] virtual LogSettings settings() const = 0;
  virtual void apply(const LogSettings& settings) = 0;  // holds for lines from now on
};

}  // namespace baton::ports
