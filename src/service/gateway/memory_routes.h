#pragma once

#include <string>
#include <string_view>

#include "ports/shared_memory.h"
#include "protocol/http1/exchange.h"
#include "protocol/json/reader.h"
#include "protocol/oip/route.h"

namespace baton::service {

[[nodiscard]] bool is_memory_route(protocol::oip::RouteKind kind);

// What the shared memory routes answer; null: it is not offered. There is no CUDA shared memory:
// its list is empty, removing from it has no effect and registering is kUnsupported.
[[nodiscard]] Result<protocol::http1::HttpResponse, Refusal> answer_memory_route(
    const protocol::oip::Route& route, std::string_view body, ports::SharedMemory* memory,
    protocol::json::JsonParser& parser);

// What a caller is told where it is off.
[[nodiscard]] Refusal no_shared_memory();

}  // namespace baton::service
