#pragma once

#include <string>
#include <string_view>

#include "domain/request.h"

namespace baton::protocol::trace_context {

// All zero when `text` is not a valid traceparent of version 00 (or a later one that starts like
// it).
[[nodiscard]] TraceContext parse_traceparent(std::string_view text);
[[nodiscard]] std::string format_traceparent(const TraceContext& trace);

}  // namespace baton::protocol::trace_context
