#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/exposition/format.h"

namespace baton::protocol::exposition {

using Label = std::pair<std::string_view, std::string_view>;

// Writes one family after another; samples belong to the family begun last. Not thread-safe.
class Writer {
 public:
  explicit Writer(std::string& out, Format format = Format::kText) : out_(out), format_(format) {}

  // `type`: counter, gauge or histogram. OpenMetrics has counters whose samples end in "_total"
  // only: another counter keeps its name there and is of unknown type.
  void family(std::string_view name, std::string_view type, std::string_view help);
  void sample(std::span<const Label> labels, uint64_t value);
  void sample(std::span<const Label> labels, double value);
  struct Histogram {
    std::span<const double> bounds;     // ascending, in the unit of the family's name
    std::span<const uint64_t> buckets;  // not cumulative; one more than bounds, the last is +Inf
    double sum = 0;
  };
  void histogram(std::span<const Label> labels, const Histogram& histogram);
  // Behind the last family.
  void finish();

 private:
  void line(std::string_view suffix, std::span<const Label> labels, std::string_view le,
            std::string_view value);
  std::string& out_;
  Format format_;
  std::string name_;
};

}  // namespace baton::protocol::exposition
