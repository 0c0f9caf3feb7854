#include "service/gateway/http_front.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/json_writer.h"
#include "domain/request_parameters.h"
#include "domain/version.h"
#include "protocol/compression/zlib_stream.h"
#include "protocol/oip/infer_codec.h"
#include "protocol/oip/metadata.h"
#include "protocol/oip/request_headers.h"
#include "protocol/oip/statistics.h"
#include "protocol/trace_context/traceparent.h"
#include "service/gateway/expand_body.h"
#include "service/gateway/http_answers.h"
#include "service/gateway/log_routes.h"
#include "service/gateway/memory_routes.h"
#include "service/gateway/trace_routes.h"

namespace baton::service {

using protocol::compression::Encoding;
using protocol::http1::ExchangeId;
using protocol::http1::HttpRequest;
using protocol::http1::HttpResponse;
using protocol::oip::Route;
using protocol::oip::RouteKind;

namespace {

constexpr std::string_view kBinary = "application/octet-stream";
constexpr size_t kMostRememberedTarget = 512;

Result<void, Refusal> apply_headers(const HttpRequest& request, RequestContext& context) {
  BATON_TRY(protocol::oip::apply_request_headers(
      [&](std::string_view name) { return find_header(request, name); }, context));
  if (const auto trace = request.header("traceparent")) {
    context.trace = protocol::trace_context::parse_traceparent(*trace);
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
Result<Gateway::RequestPtr, Refusal> complete(
    Result<protocol::oip::DecodedRequest, Refusal> decoded, RequestContext& context,
    const Route& route) {
  if (!decoded.has_value()) return fail(std::move(decoded).error());
  BATON_TRY(apply_parameters(decoded->parameters, context));
  auto request = std::make_shared<InferRequest>(std::move(decoded->request));
  std::string& client_id = request->context.client_id;
  if (!client_id.empty()) context.client_id = std::move(client_id);
  // JSON may become several times larger than its text.
  context.bytes = std::max(context.bytes, request->context.bytes);
  request->context = std::move(context);
  request->model = route.model;
  request->version = route.version;
  return request;
}

// HTTP's own status for it, with what is offered.
HttpResponse unsupported_encoding(const Refusal& refusal) {
  HttpResponse response = error_response(refusal, 415);
  response.headers.push_back({"Accept-Encoding", "gzip, deflate, identity"});
  return response;
}

// An answer as it leaves.
struct Packed {
  protocol::oip::EncodedResponse encoded;
  Encoding encoding = Encoding::kIdentity;
  size_t json_bytes = 0;    // before it was compressed
  bool has_binary = false;  // tensors behind the JSON
  [[nodiscard]] uint64_t bytes() const {
    uint64_t sum = encoded.json.size();
    for (const auto& part : encoded.binary) sum += part.size();
    return sum;
  }
};

uint64_t tensor_bytes(const InferResult& result) {
  uint64_t bytes = 0;
  for (const Tensor& output : result.outputs) bytes += output.data.size();
  return bytes;
}

Result<Packed, Refusal> encode(const InferRequest& request, const InferResult& result,
                               protocol::oip::ResponseNames names, Encoding accepted) {
  Packed packed;
  BATON_ASSIGN(packed.encoded, protocol::oip::encode_infer_response(request, result, names));
  protocol::oip::EncodedResponse& encoded = packed.encoded;
  packed.json_bytes = encoded.json.size();
  packed.has_binary = !encoded.binary.empty();
  if (accepted == Encoding::kIdentity || packed.bytes() < kLeastCompressedAnswer) return packed;
  std::vector<std::span<const std::byte>> pieces = {std::as_bytes(std::span(encoded.json))};
  pieces.insert(pieces.end(), encoded.binary.begin(), encoded.binary.end());
  auto compressed = protocol::compression::compress(accepted, pieces);
  if (!compressed) return packed;  // it would not be smaller
  packed.encoding = accepted;
  encoded = {.json = std::move(*compressed), .binary = {}};
  return packed;
}

}  // namespace

// One inference exchange between on_request and its answer.
class HttpFront::Call final : public GatewaySink {
 public:
  Call(HttpFront& front, ExchangeId exchange, Responder& responder, Encoding accepted)
      : front_(front), accepted_(accepted), exchange(exchange), responder(responder) {}

  Rendering render(const std::shared_ptr<const InferRequest>& request, const InferResult& result,
                   const ports::ModelVersion& served) override {
    const uint64_t json = protocol::oip::json_tensor_bytes(*request, result);
    const uint64_t all = accepted_ == Encoding::kIdentity ? json : tensor_bytes(result);
    if (all <= kMostTensorsOnLoop || !front_.writing_.offered()) {
      return {.refusal = keep(encode(*request, result, {served.model, served.version}, accepted_))};
    }
    // JSON takes more than its tensors; what is compressed stands beside what it was.
    if (auto refusal = hold(json * kJsonGrowth + all - json)) {
      return {.refusal = std::move(refusal)};
    }
    // With its own share of the result: the call may end before the job does.
    work = front_.writing_.start(
        [request, result, accepted = accepted_, model = served.model, version = served.version] {
          return encode(*request, result, {model, version}, accepted);
        },
        [this](Result<Packed, Refusal> rendered) {
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
  std::optional<Refusal> keep(Result<Packed, Refusal> rendered) {
    if (!rendered.has_value()) return std::move(rendered).error();
    held = {};  // what was held for a job's text
    if (const uint64_t bytes = rendered->bytes(); bytes > kMostUncountedAnswer) {
      if (auto refusal = hold(bytes)) return refusal;
    }
    packed = std::move(*rendered);
    return std::nullopt;
  }

  HttpFront& front_;
  const Encoding accepted_;

 public:
  Packed packed;          // from render() to the answer
  Storage held;           // its bytes, among those that wait for clients
  SideWork::Ticket work;  // of the job that decodes or encodes
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
      body_bytes_max_(ports.body_bytes_max),
      forward_headers_(ports.forward_headers),
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
    auto route = route_of(head);
    if (!route.has_value()) refusal = std::move(route).error();
  }
  if (!refusal) return std::nullopt;
  gateway_.record_refused(context_of(head), "", *refusal);
  if (refusal->reason == EndReason::kMethodNotAllowed) {
    return wrong_method(*refusal, protocol::oip::allowed_methods(head.target));
  }
  return error_response(*refusal);
}

Result<Route, Refusal> HttpFront::route_of(const HttpRequest& request) {
  if (request.target == last_route_.target && request.method == last_route_.method) {
    return last_route_.route;
  }
  auto route = protocol::oip::parse_route(request.method, request.target);
  if (route.has_value() && request.target.size() <= kMostRememberedTarget) {
    last_route_ = {std::string(request.method), std::string(request.target), *route};
  }
  return route;
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
  if (forward_headers_ != nullptr) {
    HeaderCollector headers(*forward_headers_);
    for (const auto& header : request.headers) headers.add(header.name, header.value);
    context.headers = headers.take();
  }
  return context;
}

void HttpFront::on_request(ExchangeId id, HttpRequest request, Responder& responder) {
  const auto route = route_of(request);
  if (!route.has_value()) {  // refused at the head already; here for handlers that skip it
    responder.respond(id, error_response(route.error()));
    return;
  }
  if (route->kind == RouteKind::kModelInfer) {
    infer(id, std::move(request), *route, responder);
    return;
  }
  if (is_repository(route->kind)) {
    RequestContext context = context_of(request);
    return repository_.on_request(id, std::move(request), *route, std::move(context), responder);
  }
  auto answered = is_memory_route(route->kind)
                      ? answer_memory_route(*route, request.body, gateway_.shared_memory(), parser_)
                  : is_trace_route(route->kind)
                      ? answer_trace_route(*route, request.body, gateway_, parser_)
                  : is_log_route(route->kind)
                      ? answer_log_route(*route, request.body, gateway_.log_control(), parser_)
                      : answer_query(*route);
  if (!answered.has_value()) {
    gateway_.record_refused(context_of(request), route->model, answered.error());
  }
  responder.respond(id,
                    answered.has_value() ? std::move(*answered) : error_response(answered.error()));
}

void HttpFront::infer(ExchangeId id, HttpRequest request, const Route& route,
                      Responder& responder) {
  RequestContext context = context_of(request);
  const auto refuse = [&](const Refusal& refusal) {
    gateway_.record_refused(context, route.model, refusal);
    responder.respond(id, error_response(refusal));
  };
  if (auto applied = apply_headers(request, context); !applied.has_value()) {
    return refuse(applied.error());
  }
  const auto encoding = content_encoding(request);
  if (!encoding.has_value()) {
    gateway_.record_refused(context, route.model, encoding.error());
    return responder.respond(id, unsupported_encoding(encoding.error()));
  }
  const auto begin = [&]() -> Call& {
    const Encoding accepted =
        protocol::compression::choose_encoding(request.header("accept-encoding").value_or(""));
    auto call = std::make_unique<Call>(*this, id, responder, accepted);
    return *calls_.emplace(id.value(), std::move(call)).first->second;
  };
  auto expanded = expand_on_loop(request, *encoding);
  if (!expanded.has_value()) return refuse(expanded.error());
  context.bytes = std::max(context.bytes, uint64_t{request.body.size()});
  const bool large = protocol::oip::json_bytes(body_of(request)) > kMostJsonOnLoop;
  if (!*expanded || (reading_.offered() && large)) {
    Call& call = begin();
    const Encoding left = *expanded ? Encoding::kIdentity : *encoding;
    if (auto refusal = decode_by_job(call, {std::move(request), left}, context, route)) {
      calls_.erase(id.value());
      refuse(*refusal);
    }
    return;
  }
  auto typed = complete(headers_.decode(body_of(request), parser_), context, route);
  if (!typed.has_value()) return refuse(typed.error());
  Call& call = begin();
  call.token = gateway_.infer(*std::move(typed), call);
}

Result<bool, Refusal> HttpFront::expand_on_loop(HttpRequest& request, Encoding encoding) const {
  if (encoding == Encoding::kIdentity) return true;
  if (!reading_.offered()) {
    BATON_TRY(expand_body(request, encoding, body_bytes_max_));
    return true;
  }
  if (request.body.size() > kMostPackedOnLoop) return false;
  const uint64_t most = std::min(body_bytes_max_, kMostExpandedOnLoop);
  auto expanded = expand_body(request, encoding, most);
  if (expanded.has_value()) return true;
  if (expanded.error().reason == EndReason::kTooLarge && most < body_bytes_max_) return false;
  return fail(std::move(expanded).error());
}

std::optional<Refusal> HttpFront::decode_by_job(Call& call, PackedRequest packed,
                                                RequestContext& context, const Route& route) {
  auto token = gateway_.expect(context, route.model, call);
  if (!token.has_value()) return std::move(token).error();
  call.token = *token;
  struct Read {
    Result<protocol::oip::DecodedRequest, Refusal> decoded;
    uint64_t bytes = 0;  // of the expanded body
  };
  call.work = reading_.start(
      [packed = std::move(packed), most = body_bytes_max_]() mutable -> Read {
        HttpRequest& request = packed.request;
        auto expanded = expand_body(request, packed.encoding, most);
        if (!expanded.has_value()) return {fail(std::move(expanded).error())};
        protocol::json::JsonParser parser;
        return {protocol::oip::decode_infer_request(body_of(request), parser), request.body.size()};
      },
      [this, token = *token, context = RequestContext(context), route](Read read) mutable {
        context.bytes = std::max(context.bytes, read.bytes);
        gateway_.decoded(token, complete(std::move(read.decoded), context, route));
      });
  return std::nullopt;
}

void HttpFront::finish(Call& call, GatewayAnswer answer) {
  const ExchangeId id = call.exchange;
  Responder& responder = call.responder;
  Packed packed = std::move(call.packed);
  Storage held = std::move(call.held);
  calls_.erase(id.value());
  if (answer.refusal) {
    responder.respond(id, error_response(*answer.refusal));
    return;
  }
  HttpResponse response = json_response(200, std::move(packed.encoded.json));
  if (packed.encoding != Encoding::kIdentity) {
    response.headers.push_back(
        {"Content-Encoding", std::string(protocol::compression::encoding_name(packed.encoding))});
    response.headers.push_back({"Vary", "Accept-Encoding"});
  }
  if (packed.has_binary) {
    response.content_type = kBinary;
    response.headers.push_back(
        {"Inference-Header-Content-Length", std::to_string(packed.json_bytes)});
    response.parts = std::move(packed.encoded.binary);
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
      return json_response(
          200, protocol::oip::server_metadata_json(kBatonVersion, gateway_.extensions()));
    case RouteKind::kModelStatistics: {
      BATON_ASSIGN(const auto statistics, gateway_.statistics(route.model, route.version));
      return json_response(200, protocol::oip::statistics_json(statistics));
    }
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
