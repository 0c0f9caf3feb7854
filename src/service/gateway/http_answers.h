#pragma once
// Answers that every HTTP front of this room gives alike.

#include <string>
#include <string_view>

#include "domain/end_reason.h"
#include "protocol/http1/exchange.h"

namespace baton::service {

[[nodiscard]] protocol::http1::HttpResponse json_response(int status, std::string body);
// With Retry-After when the refusal advises one.
[[nodiscard]] protocol::http1::HttpResponse error_response(const Refusal& refusal, int status);
[[nodiscard]] protocol::http1::HttpResponse error_response(const Refusal& refusal);
// What the codec or the server refused before a handler saw it, by its status.
[[nodiscard]] Refusal codec_refusal(int status, std::string_view message);

}  // namespace baton::service
