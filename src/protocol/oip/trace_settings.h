#pragma once
// The trace extension, whatever protocol carries it.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/end_reason.h"
#include "domain/trace_settings.h"
#include "protocol/json/reader.h"

namespace baton::protocol::oip {

// A setting as its texts: trace_level may have several, the others have one.
struct TraceValue {
  std::string_view name;
  std::vector<std::string> texts;
};
[[nodiscard]] std::vector<TraceValue> trace_values(const TraceSettings& settings,
                                                   std::string_view file);

// Sets what `name` means; no texts: clears it. `file` is where traces go. Errors: kInvalid for an
// unknown name or a text that it cannot be; kUnsupported for tensors and another file.
[[nodiscard]] Result<void, Refusal> set_trace_value(std::string_view name,
                                                    const std::vector<std::string>& texts,
                                                    std::string_view file,
                                                    TraceOverrides& overrides);

// What cannot hold for one model. An empty name: nothing.
[[nodiscard]] Result<void, Refusal> check_trace_overrides(std::string_view model,
                                                          const TraceOverrides& overrides);
[[nodiscard]] Refusal traces_not_offered();

// A body with some of the settings, over `current`. Nothing holds of a body with an error.
[[nodiscard]] Result<TraceOverrides, Refusal> parse_trace_settings(std::string_view body,
                                                                   json::JsonParser& parser,
                                                                   std::string_view file,
                                                                   const TraceOverrides& current);
[[nodiscard]] std::string trace_settings_json(const TraceSettings& settings, std::string_view file);

}  // namespace baton::protocol::oip
