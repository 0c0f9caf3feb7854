#pragma once
// Internal to this room: the trace extension over HTTP.

#include "ports/trace_control.h"
#include "protocol/http1/exchange.h"
#include "protocol/json/reader.h"
#include "protocol/oip/route.h"
#include "service/gateway/gateway.h"

namespace baton::service {

[[nodiscard]] bool is_trace_route(protocol::oip::RouteKind kind);
// Errors: kUnsupported when it is not offered; kNotFound for an unknown model; those of the
// settings.
[[nodiscard]] Result<protocol::http1::HttpResponse, Refusal> answer_trace_route(
    const protocol::oip::Route& route, std::string_view body, Gateway& gateway,
    protocol::json::JsonParser& parser);

}  // namespace baton::service
