#include "service/gateway/typed_front.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "domain/engine_kind.h"
#include "domain/version.h"
#include "protocol/oip/metadata.h"

namespace baton::service {
namespace {

std::vector<TensorSpec> with_batch_dimension(const std::vector<TensorSpec>& specs, bool batches) {
  std::vector<TensorSpec> out = specs;
  if (batches) {
    for (TensorSpec& spec : out) spec.dims.insert(spec.dims.begin(), -1);
  }
  return out;
}

// The requested outputs in the requested order; the model's order when none were named.
void order_outputs(const InferRequest& request, InferResult& result) {
  std::vector<Tensor> ordered;
  for (const RequestedOutput& wanted : request.outputs) {
    const auto found = std::ranges::find(result.outputs, wanted.name, &Tensor::name);
    if (found != result.outputs.end()) ordered.push_back(std::move(*found));
  }
  if (!request.outputs.empty()) result.outputs = std::move(ordered);
}

}  // namespace

class TypedFront::Call final : public GatewaySink {
 public:
  Call(TypedFront& front, ports::InferSink sink) : front_(front), sink_(std::move(sink)) {}

  // Every answer counts: a connection has up to a thousand calls.
  Rendering render(const std::shared_ptr<const InferRequest>&, const InferResult& result,
                   const ports::ModelVersion&) override {
    uint64_t bytes = 0;
    for (const Tensor& output : result.outputs) bytes += output.data.size();
    auto hold = front_.gateway_.hold_answer(bytes);
    if (!hold.has_value()) return {.refusal = std::move(hold).error()};
    held_ = std::move(*hold);
    return {};
  }

  void on_answer(GatewayAnswer answer) override {
    if (held_) answer.result.storage.push_back(std::move(held_));
    ports::InferSink sink = std::move(sink_);
    front_.calls_.erase(token.value());  // destroys this
    if (answer.refusal) {
      sink(fail(std::move(*answer.refusal)));
      return;
    }
    order_outputs(*answer.request, answer.result);
    sink(ports::InferAnswer{std::move(answer.model), answer.version, std::move(answer.result)});
  }

 private:
  TypedFront& front_;
  ports::InferSink sink_;
  Storage held_;  // the answer's bytes, among those that wait for clients

 public:
  GatewayToken token;
};

TypedFront::TypedFront(Gateway& gateway, const AccessControl* access,
                       ports::RepositoryControl* repository)
    : gateway_(gateway), access_(access), repository_(repository) {}

TypedFront::~TypedFront() {
  BATON_CHECK(calls_.empty());
}

ports::InferToken TypedFront::infer(const ports::Caller& caller,
                                    std::shared_ptr<InferRequest> request, ports::InferSink sink) {
  set_tenant(caller, request->context);
  if (auto refusal = refuse_caller(caller)) {
    gateway_.record_refused(request->context, request->model, *refusal);
    sink(fail(std::move(*refusal)));
    return ports::InferToken();
  }
  auto owned = std::make_unique<Call>(*this, std::move(sink));
  Call& call = *owned;
  call.token = gateway_.infer(std::move(request), call);
  calls_.emplace(call.token.value(), std::move(owned));
  return ports::InferToken(call.token.value());
}

void TypedFront::cancel(ports::InferToken token) {
  gateway_.cancel(GatewayToken(token.value()));
}

void TypedFront::set_tenant(const ports::Caller& caller, RequestContext& context) const {
  if (access_ != nullptr) {
    context.tenant = access_->tenant_of(caller.authorization, std::nullopt);
  }
}

void TypedFront::count_refused(const ports::Caller& caller, RequestContext context,
                               std::string_view model, const Refusal& refusal) {
  set_tenant(caller, context);
  gateway_.record_refused(context, model, refusal);
}

std::optional<Refusal> TypedFront::refuse_caller(const ports::Caller& caller) const {
  if (access_ == nullptr) return std::nullopt;
  return access_->refuse(caller.authorization, std::nullopt);
}

bool TypedFront::server_ready() {
  return gateway_.server_ready().ready;
}

ports::ServerDescription TypedFront::server() {
  ports::ServerDescription description;
  description.name = "baton";
  description.version = kBatonVersion;
  for (std::string_view extension : gateway_.extensions()) {
    description.extensions.emplace_back(extension);
  }
  return description;
}

ports::ModelReadiness TypedFront::model_ready(std::string_view model,
                                              std::optional<int64_t> version) {
  const auto view = gateway_.view(std::string(model), version);
  if (!view.has_value()) {
    return {view.error().reason != EndReason::kNotFound, false, view.error().message};
  }
  return {true, view->ready(), view->served->reason};
}

Result<ModelView, Refusal> TypedFront::ready_view(std::string_view model,
                                                  std::optional<int64_t> version) {
  auto view = gateway_.view(std::string(model), version);
  if (view.has_value() && !view->ready()) view = fail(not_ready(*view));
  return view;
}

Result<ports::ModelDescription, Refusal> TypedFront::model(std::string_view model,
                                                           std::optional<int64_t> version) {
  BATON_ASSIGN(const ModelView view, ready_view(model, version));
  const ModelConfig& config = view.served->config;
  ports::ModelDescription description;
  description.name = config.name;
  description.platform = engine_kind_row(EngineKind::kOnnx).platform;
  for (int64_t number : view.ready_versions) description.versions.push_back(std::to_string(number));
  description.inputs = with_batch_dimension(config.inputs, config.batches());
  description.outputs = with_batch_dimension(config.outputs, config.batches());
  return description;
}

Result<std::string, Refusal> TypedFront::model_config(std::string_view model,
                                                      std::optional<int64_t> version) {
  BATON_ASSIGN(const ModelView view, ready_view(model, version));
  return view.served->config.serialized;
}

Result<std::vector<ModelStatistics>, Refusal> TypedFront::statistics(
    std::string_view model, std::optional<int64_t> version) {
  return gateway_.statistics(std::string(model), version);
}

}  // namespace baton::service
