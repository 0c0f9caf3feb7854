#pragma once
// The logging extension, whatever protocol carries it.

#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "domain/end_reason.h"
#include "domain/log_settings.h"
#include "protocol/json/reader.h"

namespace baton::protocol::oip {

using LogValue = std::variant<bool, uint64_t, std::string>;

// The log goes to standard error in lines of this format; neither can be changed by clients.
inline constexpr std::string_view kLogFile;
inline constexpr std::string_view kLogFormat = "ISO8601";

// Sets what `name` means. Errors: kInvalid for an unknown name or a value of another type;
// kUnsupported for a log_file or log_format other than it has.
[[nodiscard]] Result<void, Refusal> set_log_value(std::string_view name, const LogValue& value,
                                                  LogSettings& settings);

// A body with some of the settings, over `current`. Nothing holds of a body with an error.
[[nodiscard]] Result<LogSettings, Refusal> parse_log_settings(std::string_view body,
                                                              json::JsonParser& parser,
                                                              const LogSettings& current);
[[nodiscard]] std::string log_settings_json(const LogSettings& settings);

}  // namespace baton::protocol::oip
