#include "service/gateway/http_answers.h"

#include <algorithm>
#include <array>
#include <utility>

#include "protocol/oip/infer_codec.h"
#include "protocol/oip/metadata.h"

namespace baton::service {

using protocol::http1::HttpRequest;
using protocol::http1::HttpResponse;

namespace {

// Of which a second one would leave open which counts, beside those that gRPC has too.
constexpr std::array<std::string_view, 2> kSingleRestHeaders = {protocol::oip::kHeaderLengthHeader,
                                                                "content-encoding"};

}  // namespace

HttpResponse json_response(int status, std::string body) {
  HttpResponse response;
  response.status = status;
  response.content_type = "application/json";
  response.body = std::move(body);
  return response;
}

HttpResponse error_response(const Refusal& refusal, int status) {
  HttpResponse response = json_response(status, protocol::oip::error_json(refusal));
  if (const int64_t seconds = protocol::oip::retry_after_seconds(refusal); seconds > 0) {
    response.headers.push_back({"Retry-After", std::to_string(seconds)});
  }
  return response;
}

HttpResponse error_response(const Refusal& refusal) {
  return error_response(refusal, protocol::oip::http_status(refusal.reason));
}

HttpResponse wrong_method(const Refusal& refusal, std::string_view allowed) {
  HttpResponse response = error_response(refusal);
  response.headers.push_back({"Allow", std::string(allowed)});
  return response;
}

protocol::oip::FoundHeader find_header(const HttpRequest& request, std::string_view name) {
  const auto count = std::ranges::count(request.headers, name, &protocol::http1::HeaderView::name);
  return {static_cast<size_t>(count), request.header(name).value_or("")};
}

Result<void, Refusal> refuse_repeated(const HttpRequest& request) {
  for (std::string_view name : kSingleRestHeaders) {
    if (find_header(request, name).count < 2) continue;
    return fail(
        Refusal{EndReason::kInvalid, "the header " + std::string(name) + " stands twice", {}});
  }
  return protocol::oip::refuse_repeated_headers(
      [&](std::string_view name) { return find_header(request, name); });
}

Refusal codec_refusal(int status, std::string_view message) {
  Refusal refusal{EndReason::kInvalid, std::string(message), {}};
  switch (status) {
    case 408:
      refusal.reason = EndReason::kSlowClient;
      break;
    case 413:
    case 414:
    case 431:
      refusal.reason = EndReason::kTooLarge;
      break;
    case 501:
      refusal.reason = EndReason::kUnsupported;
      break;
    case 503:
      refusal.reason = EndReason::kOverloaded;
      refusal.retry_after = Duration::s(1);
      break;
    default:
      break;
  }
  return refusal;
}

}  // namespace baton::service
