#include "adapters/grpc/call.h"

#include <utility>

namespace baton::adapters::grpc_api {

Call::Call(const CallContext& context, CallSink& sink, StreamId stream,
           std::unique_ptr<protocol::grpc_wire::CallHead> head, std::string peer)
    : context_(context),
      sink_(&sink),
      stream_(stream),
      head_(std::move(head)),
      arrival_(context.clock.now()),
      answer_encoding_(adapters::grpc_api::answer_encoding(head_->metadata)),
      caller_(caller_of(head_->metadata, peer)),
      headers_(forwarded(head_->metadata, context.forward_headers)) {}

RequestContext Call::request_context() const {
  RequestContext out;
  out.protocol = Protocol::kGrpc;
  out.arrival = arrival_;
  out.bytes = request_bytes_;
  if (head_->timeout) out.deadline = arrival_ + *head_->timeout;
  add_names(head_->metadata, out);
  out.headers = headers_;
  return out;
}

void Call::set_request(std::string message) {
  request_bytes_ = message.size();
  request_ = std::move(message);
  has_request_ = true;
}

std::vector<MessagePart> message_of(std::string text) {
  std::vector<MessagePart> parts(1);
  parts.front().text = std::move(text);
  return parts;
}

void Call::write(std::vector<MessagePart> message, std::move_only_function<void(bool)> written) {
  written_ = std::move(written);
  dispatch(std::move(message), false);
}

// Compressed where the client takes that; much of it by a job, meanwhile the call is open.
void Call::dispatch(std::vector<MessagePart> message, bool last) {
  if (sink_ == nullptr) return;
  size_t size = 0;
  if (answer_encoding_ != Encoding::kIdentity) {
    for (const MessagePart& part : message) size += part.text.size() + part.view.size();
  }
  if (size < kLeastCompressedAnswer) return dispatch_packed(std::move(message), {}, last);
  if (worker().readers == nullptr || size <= kMostPackedOnWorker) {
    auto packed = pack_message(answer_encoding_, message);
    return dispatch_packed(std::move(message), std::move(packed), last);
  }
  worker().readers->run([self = shared_from_this(), message = std::move(message),
                         last](ports::Cancellation&) mutable {
    auto packed = pack_message(self->answer_encoding_, message);
    auto& loop = *self->worker().loop;
    loop.post(
        [self = std::move(self), message = std::move(message), packed = std::move(packed),
         last]() mutable { self->dispatch_packed(std::move(message), std::move(packed), last); });
  });
}

void Call::dispatch_packed(std::vector<MessagePart> message, std::optional<MessagePart> packed,
                           bool last) {
  if (sink_ == nullptr) return;
  const bool compressed = packed.has_value();
  if (compressed) {
    message.clear();
    message.push_back(*std::move(packed));
  }
  sink_->send(stream_, std::move(message), compressed);
  if (last) finish({});
}

void Call::on_messages(std::move_only_function<void(std::string)> message,
                       std::move_only_function<void()> end) {
  message_ = std::move(message);
  messages_end_ = std::move(end);
}

void Call::message(std::string bytes) {
  if (message_) message_(std::move(bytes));
}

void Call::half_closed() {
  if (messages_end_) messages_end_();
}

void Call::pause() {
  if (sink_ != nullptr) sink_->pause(stream_);
}

void Call::resume() {
  if (sink_ != nullptr) sink_->resume(stream_);
}

void Call::answer(std::vector<MessagePart> message) {
  cancelled_ = nullptr;
  dispatch(std::move(message), true);
}

void Call::finish(const Status& status) {
  cancelled_ = nullptr;
  if (CallSink* sink = std::exchange(sink_, nullptr)) sink->finish(stream_, status);
}

Status Call::refused(std::string_view model, const Refusal& refusal) {
  worker().front->count_refused(caller_, request_context(), model, refusal);
  return status_of(refusal);
}

void Call::on_cancel(std::move_only_function<void()> action) {
  if (gone_) return action();
  cancelled_ = std::move(action);
}

void Call::sent() {
  if (auto written = std::exchange(written_, nullptr)) written(true);
}

void Call::closed() {
  const auto self = shared_from_this();
  // They may hold the method's own state, which holds this: let go of at the end.
  const auto message = std::exchange(message_, nullptr);
  const auto messages_end = std::exchange(messages_end_, nullptr);
  if (std::exchange(sink_, nullptr) == nullptr) return;
  gone_ = true;
  if (auto written = std::exchange(written_, nullptr)) written(false);
  if (auto cancelled = std::exchange(cancelled_, nullptr)) cancelled();
}

}  // namespace baton::adapters::grpc_api
