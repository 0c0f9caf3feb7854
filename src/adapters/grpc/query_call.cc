#include "adapters/grpc/query_call.h"

#include <utility>

namespace baton::adapters::grpc_api {
namespace {

constexpr size_t kMostQueryBytes = 64 << 10;  // it holds a name and a version

}  // namespace

void QueryCall::await(const QuerySource& source) {
  auto call = std::make_shared<QueryCall>(source);
  call->context_.AsyncNotifyWhenDone(call->ending_.of(call));
  bool asked = false;
  source.queue.ask_for_call([&](grpc::ServerCompletionQueue& queue) {
    source.service.RequestCall(&call->context_, &call->stream_, &queue, &queue,
                               call->arrival_.of(call));
    asked = true;
  });
  if (!asked) call->ending_.forget();
}

QueryCall::QueryCall(const QuerySource& source) : source_(source), worker_(source.workers.next()) {}

QueryCall::~QueryCall() {
  if (entered_) source_.queue.leave();
}

void QueryCall::arrived(bool ok) {
  if (!ok) return ending_.forget();
  entered_ = source_.queue.enter();
  if (!entered_) return;
  await(source_);
  const std::string& name = context_.method();
  const auto found = source_.methods.offered.find(name);
  if (found != source_.methods.offered.end()) {
    method_ = &found->second;
    return stream_.Read(&request_, reading_.of(shared_from_this()));
  }
  const auto known = source_.methods.not_offered.find(name);
  refuse_on_worker({EndReason::kUnsupported,
                    known == source_.methods.not_offered.end()
                        ? "there is no such method"
                        : known->second + " is not offered by this server",
                    {}});
}

void QueryCall::has_read(bool ok) {
  if (!ok && context_.IsCancelled()) {
    return refuse_on_worker({EndReason::kClientGone, "the client cancelled the call", {}});
  }
  if (!ok) return refuse_on_worker({EndReason::kInvalid, "the call has no message", {}});
  if (request_.Length() > kMostQueryBytes) {
    request_.Clear();
    return refuse_on_worker({EndReason::kTooLarge, "the message is larger than 64 KiB", {}});
  }
  worker_.executor->post([self = shared_from_this()] { (*self->method_)(self); });
}

void QueryCall::write(const grpc::ByteBuffer& message,
                      std::move_only_function<void(bool)> written) {
  written_ = std::move(written);
  stream_.Write(message, writing_.of(shared_from_this()));
}

void QueryCall::has_written(bool ok) {
  worker_.executor->post([self = shared_from_this(), ok] {
    if (auto written = std::exchange(self->written_, nullptr)) written(ok);
  });
}

void QueryCall::answer(const grpc::ByteBuffer& message) {
  stream_.WriteAndFinish(message, {}, grpc::Status::OK, finishing_.of(shared_from_this()));
}

void QueryCall::finish(const grpc::Status& status) {
  stream_.Finish(status, finishing_.of(shared_from_this()));
}

grpc::Status QueryCall::refused(std::string_view model, const Refusal& refusal) {
  RequestContext context = context_of(context_, source_.clock);
  context.bytes = request_.Length();
  worker_.front->count_refused(caller_of(context_), std::move(context), model, refusal);
  return refuse(context_, refusal);
}

void QueryCall::refuse_on_worker(Refusal refusal) {
  worker_.executor->post(
      [self = shared_from_this(), refusal = std::move(refusal)] { self->refuse_counted(refusal); });
}

void QueryCall::on_cancel(std::move_only_function<void()> action) {
  if (gone_) return action();
  cancelled_ = std::move(action);
}

void QueryCall::has_ended(bool) {
  worker_.executor->post([self = shared_from_this(), gone = context_.IsCancelled()] {
    self->gone_ = gone;
    auto cancelled = std::exchange(self->cancelled_, nullptr);
    if (gone && cancelled) cancelled();
  });
}

}  // namespace baton::adapters::grpc_api
