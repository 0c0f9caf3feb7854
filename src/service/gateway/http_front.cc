#include "service/gateway/http_front.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "base/json_writer.h"
#include "domain/version.h"
#include "protocol/oip/infer_codec.h"
#include "protocol/oip/metadata.h"
#include "protocol/trace_context/traceparent.h"
#include "service/gateway/http_answers.h"

namespace baton::service {

using protocol::http1::ExchangeId;
using protocol::http1::HttpRequest;
using protocol::http1::HttpResponse;
using protocol::oip::Route;
using protocol::oip::RouteKind;

namespace {

constexpr std::string_view kBinary = "application/octet-stream";
constexpr std::string_view kTimeoutHeader = "x-request-timeout-ms";
constexpr uint64_t kMostTimeoutMs = 86'400'000;  // a day: longer is a mistake

// Health and liveness answer without a key: probes have none.
bool is_open_route(std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  return path == "/livez" || path == "/readyz" || path.starts_with("/v2/health/");
}

Result<void, Refusal> apply_timeout_header(std::string_view text, RequestContext& context) {
  uint64_t ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (error != std::errc() || end != text.data() + text.size() || ms == 0 || ms > kMostTimeoutMs) {
    return fail(Refusal{EndReason::kInvalid,
                        "X-Request-Timeout-Ms is an integer from 1 to 86400000 milliseconds",
                        {}});
  }
  context.deadline =
      std::min(context.deadline, context.arrival + Duration::ms(static_cast<int64_t>(ms)));
  return {};
}

Result<void, Refusal> apply_class_header(std::string_view text, RequestContext& context) {
  const auto parsed = parse_traffic_class(text);
  if (!parsed) {
    return fail(Refusal{
        EndReason::kInvalid, "X-Request-Class is one of interactive, batch, experimental", {}});
  }
  context.traffic_class = *parsed;
  return {};
}

// Headers of which a second one would leave open which counts.
constexpr std::array<std::string_view, 5> kSingleHeaders = {protocol::oip::kHeaderLengthHeader,
                                                            kTimeoutHeader, "x-request-class",
                                                            "traceparent", "content-encoding"};

Result<void, Refusal> refuse_repeated_headers(const HttpRequest& request) {
  for (std::string_view name : kSingleHeaders) {
    if (std::ranges::count(request.headers, name, &protocol::http1::HeaderView::name) > 1) {
      return fail(
          Refusal{EndReason::kInvalid, "the header " + std::string(name) + " stands twice", {}});
    }
  }
  return {};
}

Result<void, Refusal> apply_headers(const HttpRequest& request, RequestContext& context) {
  BATON_TRY(refuse_repeated_headers(request));
  if (const auto timeout = request.header(kTimeoutHeader)) {
    BATON_TRY(apply_timeout_header(*timeout, context));
  }
  if (const auto traffic_class = request.header("x-request-class")) {
    BATON_TRY(apply_class_header(*traffic_class, context));
  }
  if (const auto trace = request.header("traceparent")) {
    context.trace = protocol::trace_context::parse_traceparent(*trace);
  }
  if (const auto encoding = request.header("content-encoding");
      encoding && *encoding != "identity") {
    return fail(Refusal{EndReason::kUnsupported,
                        "Content-Encoding \"" + std::string(*encoding) +
                            "\" is not offered; send the body as it is",
                        {}});
  }
  return {};
}

Result<void, Refusal> apply_parameters(const protocol::oip::SchedulingParameters& parameters,
                                       RequestContext& context) {
  if (parameters.timeout_us.value_or(0) != 0) {
    const auto timeout = Duration::us(static_cast<int64_t>(*parameters.timeout_us));
    context.deadline = std::min(context.deadline, context.arrival + timeout);
  }
  if (parameters.priority.value_or(0) > UINT32_MAX) {
    return fail(Refusal{EndReason::kInvalid, "the parameter \"priority\" is too large", {}});
  }
  context.priority = static_cast<uint32_t>(parameters.priority.value_or(0));
  return {};
}

}  // namespace

// One inference exchange between on_request and its answer.
class HttpFront::Call final : public GatewaySink {
 public:
  Call(HttpFront& front, ExchangeId exchange, Responder& responder)
      : front_(front), exchange(exchange), responder(responder) {}
  std::optional<Refusal> render(const InferRequest& request, const InferResult& result,
                                const ports::ModelVersion& served) override {
    auto rendered =
        protocol::oip::encode_infer_response(request, result, {served.model, served.version});
    if (!rendered.has_value()) return std::move(rendered).error();
    encoded = std::move(*rendered);
    return std::nullopt;
  }
  void on_answer(GatewayAnswer answer) override { front_.finish(*this, std::move(answer)); }

 private:
  HttpFront& front_;

 public:
  protocol::oip::EncodedResponse encoded;  // from render() to the answer
  const ExchangeId exchange;
  Responder& responder;
  GatewayToken token;
};

HttpFront::HttpFront(Gateway& gateway, const ports::Clock& clock, Telemetry& telemetry,
                     const AccessControl* access)
    : gateway_(gateway),
      clock_(clock),
      cells_(telemetry.cells(gateway.worker())),
      access_(access) {}

HttpFront::~HttpFront() {
  BATON_CHECK(calls_.empty());
}

std::optional<HttpResponse> HttpFront::on_head(const HttpRequest& head, std::optional<uint64_t>) {
  cells_.requests.add();
  std::optional<Refusal> refusal;
  if (access_ != nullptr && !is_open_route(head.target)) {
    refusal = access_->refuse(head.header("authorization"), head.header("x-api-key"));
  }
  if (!refusal) {
    auto route = protocol::oip::parse_route(head.method, head.target);
    if (!route.has_value()) refusal = std::move(route).error();
  }
  if (!refusal) return std::nullopt;
  gateway_.record_refused(context_of(head), "", *refusal);
  return error_response(*refusal);
}

RequestContext HttpFront::context_of(const HttpRequest& request) const {
  RequestContext context;
  context.protocol = Protocol::kHttp;
  context.arrival = request.arrival;
  context.bytes = request.body.size();
  if (access_ != nullptr) {
    context.tenant =
        access_->tenant_of(request.header("authorization"), request.header("x-api-key"));
  } else if (const auto tenant = request.header("x-tenant")) {
    context.tenant = *tenant;
  }
  if (const auto id = request.header("x-request-id")) context.client_id = *id;
  return context;
}

void HttpFront::on_request(ExchangeId id, HttpRequest request, Responder& responder) {
  const auto route = protocol::oip::parse_route(request.method, request.target);
  if (!route.has_value()) {  // refused at the head already; here for handlers that skip it
    responder.respond(id, error_response(route.error()));
    return;
  }
  if (route->kind == RouteKind::kModelInfer) {
    infer(id, request, *route, responder);
    return;
  }
  auto answered = answer_query(*route);
  if (!answered.has_value()) {
    gateway_.record_refused(context_of(request), route->model, answered.error());
  }
  responder.respond(id,
                    answered.has_value() ? std::move(*answered) : error_response(answered.error()));
}

void HttpFront::infer(ExchangeId id, const HttpRequest& request, const Route& route,
                      Responder& responder) {
  RequestContext context = context_of(request);
  const auto refuse = [&](const Refusal& refusal) {
    gateway_.record_refused(context, route.model, refusal);
    responder.respond(id, error_response(refusal));
  };
  if (auto applied = apply_headers(request, context); !applied.has_value()) {
    return refuse(applied.error());
  }
  auto decoded = protocol::oip::decode_infer_request(
      {request.body, request.body_storage, request.header(protocol::oip::kHeaderLengthHeader)},
      parser_);
  if (!decoded.has_value()) return refuse(decoded.error());
  if (auto applied = apply_parameters(decoded->parameters, context); !applied.has_value()) {
    return refuse(applied.error());
  }
  if (!decoded->request.context.client_id.empty()) {
    context.client_id = std::move(decoded->request.context.client_id);
  }
  decoded->request.context = std::move(context);
  decoded->request.model = route.model;
  decoded->request.version = route.version;
  auto owned = std::make_unique<Call>(*this, id, responder);
  Call& call = *owned;
  calls_.emplace(id.value(), std::move(owned));
  call.token = gateway_.infer(std::move(decoded->request), call);
}

void HttpFront::finish(Call& call, GatewayAnswer answer) {
  const ExchangeId id = call.exchange;
  Responder& responder = call.responder;
  protocol::oip::EncodedResponse encoded = std::move(call.encoded);
  calls_.erase(id.value());
  if (answer.refusal) {
    responder.respond(id, error_response(*answer.refusal));
    return;
  }
  HttpResponse response = json_response(200, std::move(encoded.json));
  if (!encoded.binary.empty()) {
    response.content_type = kBinary;
    response.headers.push_back(
        {"Inference-Header-Content-Length", std::to_string(response.body.size())});
    response.parts = std::move(encoded.binary);
    response.storage = std::move(answer.result.storage);
  }
  responder.respond(id, std::move(response));
}

void HttpFront::on_client_gone(ExchangeId id) {
  const auto found = calls_.find(id.value());
  if (found != calls_.end()) gateway_.cancel(found->second->token);
}

HttpResponse HttpFront::render_codec_error(int status, std::string_view message) {
  const Refusal refusal = codec_refusal(status, message);
  RequestContext context;
  context.protocol = Protocol::kHttp;
  context.arrival = clock_.now();
  gateway_.record_refused(context, "", refusal);
  return error_response(refusal, status);
}

HttpResponse HttpFront::readiness() {
  // A probe's answer and no refused request: it is neither counted nor logged.
  const ServerReadiness readiness = gateway_.server_ready();
  if (readiness.ready) return json_response(200, "");
  return error_response({EndReason::kNotReady, "not ready: " + readiness.reason, {}});
}

Result<HttpResponse, Refusal> HttpFront::answer_query(const Route& route) {
  switch (route.kind) {
    case RouteKind::kLivez:
    case RouteKind::kServerLive:
      return json_response(200, "");
    case RouteKind::kReadyz:
    case RouteKind::kServerReady:
      return readiness();
    case RouteKind::kServerMetadata:
      return json_response(200, protocol::oip::server_metadata_json(kBatonVersion));
    case RouteKind::kModelMetadata:
    case RouteKind::kModelReady:
    case RouteKind::kModelConfig:
      return model_query(route);
    default:
      break;
  }
  return fail(Refusal{EndReason::kUnsupported, "this route is not offered", {}});
}

Result<HttpResponse, Refusal> HttpFront::model_query(const Route& route) {
  BATON_ASSIGN(const ModelView view, gateway_.view(route.model, route.version));
  if (!view.ready()) return fail(not_ready(view));
  const ModelConfig& config = view.served->config;
  if (route.kind == RouteKind::kModelReady) return json_response(200, "");
  if (route.kind == RouteKind::kModelConfig) return json_response(200, config.json);
  return json_response(200, protocol::oip::model_metadata_json(config, view.ready_versions));
}

}  // namespace baton::service
