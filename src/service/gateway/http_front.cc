#include "service/gateway/http_front.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/json_writer.h"
#include "domain/request_parameters.h"
#include "domain/version.h"
#include "protocol/oip/infer_codec.h"
#include "protocol/oip/metadata.h"
#include "protocol/oip/request_headers.h"
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

Result<void, Refusal> apply_headers(const HttpRequest& request, RequestContext& context) {
  BATON_TRY(protocol::oip::apply_request_headers(
      [&](std::string_view name) { return find_header(request, name); }, context));
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

protocol::oip::RequestBody body_of(const HttpRequest& request) {
  return {request.body, request.body_storage, request.header(protocol::oip::kHeaderLengthHeader)};
}

bool is_repository(RouteKind kind) {
  return kind == RouteKind::kRepositoryIndex || kind == RouteKind::kRepositoryLoad ||
         kind == RouteKind::kRepositoryUnload;
}

// What the body says, in the context of what the head said; `context` is moved from on success.
Result<InferRequest, Refusal> complete(Result<protocol::oip::DecodedRequest, Refusal> decoded,
                                       RequestContext& context, const Route& route) {
  if (!decoded.has_value()) return fail(std::move(decoded).error());
  BATON_TRY(apply_parameters(decoded->parameters, context));
  InferRequest request = std::move(decoded->request);
  if (!request.context.client_id.empty()) context.client_id = std::move(request.context.client_id);
  // JSON may become several times larger than its text.
  context.bytes = std::max(context.bytes, request.context.bytes);
  request.context = std::move(context);
  request.model = route.model;
  request.version = route.version;
  return request;
}

}  // namespace

// One inference exchange between on_request and its answer.
class HttpFront::Call final : public GatewaySink {
 public:
  Call(HttpFront& front, ExchangeId exchange, Responder& responder)
      : front_(front), exchange(exchange), responder(responder) {}

  Rendering render(const std::shared_ptr<const InferRequest>& request, const InferResult& result,
                   const ports::ModelVersion& served) override {
    const uint64_t tensors = protocol::oip::json_tensor_bytes(*request, result);
    if (tensors <= kMostTensorsOnLoop || !front_.writing_.offered()) {
      return {.refusal = keep(protocol::oip::encode_infer_response(
                  *request, result, {served.model, served.version}))};
    }
    if (auto refusal = hold(tensors * kJsonGrowth)) return {.refusal = std::move(refusal)};
    // With its own share of the result: the call may end before the job does.
    work = front_.writing_.start(
        [request, result, model = served.model, version = served.version] {
          return protocol::oip::encode_infer_response(*request, result, {model, version});
        },
        [this](Result<protocol::oip::EncodedResponse, Refusal> rendered) {
          front_.gateway_.rendered(token, keep(std::move(rendered)));
        });
    return {.later = true, .refusal = {}};
  }
  void on_answer(GatewayAnswer answer) override { front_.finish(*this, std::move(answer)); }

 private:
  std::optional<Refusal> hold(uint64_t bytes) {
    auto lent = front_.gateway_.hold_answer(bytes);
    if (!lent.has_value()) return std::move(lent).error();
    held = std::move(*lent);
    return std::nullopt;
  }
  // Keeps an answer until it is sent, unless it is more than may wait for clients.
  std::optional<Refusal> keep(Result<protocol::oip::EncodedResponse, Refusal> rendered) {
    if (!rendered.has_value()) return std::move(rendered).error();
    uint64_t bytes = rendered->json.size();
    for (const auto& part : rendered->binary) bytes += part.size();
    held = {};  // what was held for a job's text
    if (bytes > kMostUncountedAnswer) {
      if (auto refusal = hold(bytes)) return refusal;
    }
    encoded = std::move(*rendered);
    return std::nullopt;
  }

  HttpFront& front_;

 public:
  protocol::oip::EncodedResponse encoded;  // from render() to the answer
  Storage held;                            // its bytes, among those that wait for clients
  SideWork::Ticket work;                   // of the job that decodes or encodes
  const ExchangeId exchange;
  Responder& responder;
  GatewayToken token;
};

HttpFront::HttpFront(const HttpFrontPorts& ports)
    : gateway_(ports.gateway),
      clock_(ports.clock),
      cells_(ports.telemetry.cells(ports.gateway.worker())),
      access_(ports.access),
      reading_(ports.loop, ports.readers),
      writing_(ports.loop, ports.writers),
      repository_(ports.gateway, ports.loop, reading_, ports.repository) {}

HttpFront::~HttpFront() {
  BATON_CHECK(calls_.empty());
}

std::optional<HttpResponse> HttpFront::on_head(const HttpRequest& head, std::optional<uint64_t>) {
  cells_.requests.add();
  std::optional<Refusal> refusal;
  if (auto repeated = refuse_repeated(head); !repeated.has_value()) {
    refusal = std::move(repeated).error();
  } else if (access_ != nullptr && !protocol::oip::is_health_path(head.target)) {
    refusal = access_->refuse(head.header("authorization"), head.header("x-api-key"));
  }
  if (!refusal) {
    auto route = protocol::oip::parse_route(head.method, head.target);
    if (!route.has_value()) refusal = std::move(route).error();
  }
  if (!refusal) return std::nullopt;
  gateway_.record_refused(context_of(head), "", *refusal);
  if (refusal->reason == EndReason::kMethodNotAllowed) {
    return wrong_method(*refusal, protocol::oip::allowed_methods(head.target));
  }
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
  if (is_repository(route->kind)) {
    RequestContext context = context_of(request);
    return repository_.on_request(id, std::move(request), *route, std::move(context), responder);
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
  const auto begin = [&]() -> Call& {
    return *calls_.emplace(id.value(), std::make_unique<Call>(*this, id, responder)).first->second;
  };
  if (reading_.offered() && protocol::oip::json_bytes(body_of(request)) > kMostJsonOnLoop) {
    Call& call = begin();
    if (auto refusal = decode_by_job(call, request, context, route)) {
      calls_.erase(id.value());
      refuse(*refusal);
    }
    return;
  }
  auto typed =
      complete(protocol::oip::decode_infer_request(body_of(request), parser_), context, route);
  if (!typed.has_value()) return refuse(typed.error());
  Call& call = begin();
  call.token = gateway_.infer(*std::move(typed), call);
}

std::optional<Refusal> HttpFront::decode_by_job(Call& call, HttpRequest request,
                                                RequestContext& context, const Route& route) {
  auto token = gateway_.expect(context, route.model, call);
  if (!token.has_value()) return std::move(token).error();
  call.token = *token;
  call.work = reading_.start(
      [request = std::move(request)] {
        protocol::json::JsonParser parser;
        return protocol::oip::decode_infer_request(body_of(request), parser);
      },
      [this, token = *token, context = RequestContext(context),
       route](Result<protocol::oip::DecodedRequest, Refusal> decoded) mutable {
        gateway_.decoded(token, complete(std::move(decoded), context, route));
      });
  return std::nullopt;
}

void HttpFront::finish(Call& call, GatewayAnswer answer) {
  const ExchangeId id = call.exchange;
  Responder& responder = call.responder;
  protocol::oip::EncodedResponse encoded = std::move(call.encoded);
  Storage held = std::move(call.held);
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
  if (held) response.storage.push_back(std::move(held));
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
