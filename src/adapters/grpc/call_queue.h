#pragma once
// Internal to this room: a completion queue of the library and the thread that serves it.

#include <grpcpp/completion_queue.h>

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace baton::adapters::grpc_api {

// What the library reports on: the tag of an operation.
class QueueEvent {
 public:
  virtual void on_event(bool ok) = 0;  // on the queue's thread

 protected:
  ~QueueEvent() = default;
};

// One kind of operation of a call, at most one of which is outstanding. Keeps the call alive until
// the library has reported.
template <class Call>
class Operation final : public QueueEvent {
 public:
  explicit Operation(void (Call::*react)(bool ok)) : react_(react) {}
  [[nodiscard]] void* of(std::shared_ptr<Call> call) {
    call_ = std::move(call);
    return static_cast<QueueEvent*>(this);
  }
  // The library will not report: the call has not begun.
  void forget() { call_.reset(); }
  void on_event(bool ok) override {
    const std::shared_ptr<Call> call = std::move(call_);
    (call.get()->*react_)(ok);
  }

 private:
  std::shared_ptr<Call> call_;
  void (Call::*react_)(bool ok);
};

class CallQueue {
 public:
  explicit CallQueue(std::unique_ptr<grpc::ServerCompletionQueue> queue)
      : queue_(std::move(queue)) {}
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // Begins to react to events, on a thread of its own. Once.
  void run();
  // Runs `ask`, which asks the library for one more call, unless the queue is closed. Any thread.
  template <class Ask>
  void ask_for_call(Ask ask) {
    const std::lock_guard lock(mutex_);
    if (!closed_) ask(*queue_);
  }
  // A call that has come may begin operations from enter() to leave(). False: it came too late.
  [[nodiscard]] bool enter();
  void leave();
  // When the server has shut down: waits for the calls to leave, then ends the thread. Any thread
  // but the queue's; again without effect.
  void close();

 private:
  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::mutex mutex_;
  std::condition_variable left_;
  size_t calls_ = 0;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace baton::adapters::grpc_api
