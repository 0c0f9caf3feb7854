#include "service/gateway/http_answers.h"

#include <utility>

#include "protocol/oip/metadata.h"

namespace baton::service {

using protocol::http1::HttpResponse;

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
