#pragma once
// What every HTTP front of this room asks and answers alike.

#include <string>
#include <string_view>

#include "domain/end_reason.h"
#include "protocol/http1/exchange.h"
#include "protocol/oip/request_headers.h"

namespace baton::service {

[[nodiscard]] protocol::http1::HttpResponse json_response(int status, std::string body);
// With Retry-After when the refusal advises one.
[[nodiscard]] protocol::http1::HttpResponse error_response(const Refusal& refusal, int status);
[[nodiscard]] protocol::http1::HttpResponse error_response(const Refusal& refusal);
// 405 with what the route takes: "GET, HEAD".
[[nodiscard]] protocol::http1::HttpResponse wrong_method(const Refusal& refusal,
                                                         std::string_view allowed);
[[nodiscard]] protocol::oip::FoundHeader find_header(const protocol::http1::HttpRequest& request,
                                                     std::string_view name);
// Error: kInvalid, when a header stands twice of which only one can count.
[[nodiscard]] Result<void, Refusal> refuse_repeated(const protocol::http1::HttpRequest& request);
// What the codec or the server refused before a handler saw it, by its status.
[[nodiscard]] Refusal codec_refusal(int status, std::string_view message);

}  // namespace baton::service
