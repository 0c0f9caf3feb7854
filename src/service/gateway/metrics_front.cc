#include "service/gateway/metrics_front.h"

#include "service/gateway/gateway.h"
#include "service/gateway/http_answers.h"
#include "service/gateway/models_json.h"

namespace baton::service {

namespace exposition = protocol::exposition;

using protocol::http1::ExchangeId;
using protocol::http1::HttpRequest;
using protocol::http1::HttpResponse;

std::optional<HttpResponse> MetricsFront::on_head(const HttpRequest& head,
                                                  std::optional<uint64_t>) {
  if (head.method == "GET" || head.method == "HEAD") return std::nullopt;
  return wrong_method({EndReason::kMethodNotAllowed, "this port takes GET", {}}, "GET, HEAD");
}

void MetricsFront::on_request(ExchangeId id, HttpRequest request,
                              protocol::http1::HttpResponder& responder) {
  responder.respond(id, answer(request));
}

std::optional<Refusal> MetricsFront::refuse(const HttpRequest& request) const {
  if (access_ == nullptr) return std::nullopt;
  auto single = refuse_repeated(request);
  if (!single.has_value()) return std::move(single).error();
  return access_->refuse(request.header("authorization"), request.header("x-api-key"));
}

HttpResponse MetricsFront::answer(const HttpRequest& request) const {
  std::string_view path = request.target.substr(0, request.target.find('?'));
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  if (path == "/livez") return json_response(200, "");
  const auto directory = models_.snapshot();
  if (path == "/metrics") {
    HttpResponse response;
    const auto format = exposition::choose_format(request.header("accept").value_or(""));
    response.content_type = exposition::content_type(format);
    response.body = telemetry_.render(*directory, process_(), format);
    return response;
  }
  if (path == "/models") {
    const auto refusal = refuse(request);
    return refusal ? error_response(*refusal) : json_response(200, models_json(*directory));
  }
  if (path == "/readyz") {
    const ServerReadiness readiness = server_readiness(*directory);
    if (readiness.ready) return json_response(200, "");
    return error_response({EndReason::kNotReady, readiness.reason, {}});
  }
  return error_response({EndReason::kNotFound, "Not Found", {}});
}

HttpResponse MetricsFront::render_codec_error(int status, std::string_view message) {
  return error_response(codec_refusal(status, message), status);
}

}  // namespace baton::service
