#pragma once

#include <string_view>

#include "ports/log_control.h"
#include "protocol/http1/exchange.h"
#include "protocol/json/reader.h"
#include "protocol/oip/route.h"

namespace baton::service {

[[nodiscard]] bool is_log_route(protocol::oip::RouteKind kind);

// The settings of the log, after those in the body have been applied. Null: not offered.
[[nodiscard]] Result<protocol::http1::HttpResponse, Refusal> answer_log_route(
    const protocol::oip::Route& route, std::string_view body, ports::LogControl* log,
    protocol::json::JsonParser& parser);

}  // namespace baton::service
