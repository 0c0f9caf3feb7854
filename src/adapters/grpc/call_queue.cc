#include "adapters/grpc/call_queue.h"

#include <pthread.h>

namespace baton::adapters::grpc_api {

CallQueue::~CallQueue() {
  close();
  // What the library still holds is given back only by asking for it.
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) static_cast<QueueEvent*>(tag)->on_event(ok);
}

void CallQueue::run() {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "baton-grpc");
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) static_cast<QueueEvent*>(tag)->on_event(ok);
  });
}

bool CallQueue::enter() {
  const std::lock_guard lock(mutex_);
  if (!closed_) ++calls_;
  return !closed_;
}

void CallQueue::leave() {
  const std::lock_guard lock(mutex_);
  if (--calls_ == 0) left_.notify_all();
}

void CallQueue::close() {
  {
    std::unique_lock lock(mutex_);
    left_.wait(lock, [this] { return calls_ == 0; });
    if (!std::exchange(closed_, true)) queue_->Shutdown();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace baton::adapters::grpc_api
