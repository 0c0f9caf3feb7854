#pragma once
// Every metric that the process exports, in the order of the page.

#include <span>
#include <string>
#include <string_view>

namespace baton::service {

struct MetricInfo {
  std::string_view name;
  std::string_view type;    // counter, gauge or histogram
  std::string_view unit;    // of a sample's value
  std::string_view labels;  // names, separated by ", "; empty: none
  std::string_view help;
};

[[nodiscard]] std::span<const MetricInfo> all_metrics();
// A name that is not in the table ends the process.
[[nodiscard]] const MetricInfo& metric_info(std::string_view name);
// docs/reference/metrics.md.
[[nodiscard]] std::string metrics_reference();

}  // namespace baton::service
