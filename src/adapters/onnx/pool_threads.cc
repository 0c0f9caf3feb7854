#include "adapters/onnx/pool_threads.h"

#include <pthread.h>

#include <bit>
#include <exception>
#include <memory>

namespace baton::adapters::onnx {

PoolThreads::PoolThreads() : starter_([this] { run(); }) {
  pthread_setname_np(starter_.native_handle(), "baton-starter");
}

PoolThreads::~PoolThreads() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  starter_.join();
}

void PoolThreads::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || (order_ != nullptr && !order_->done); });
    if (stop_) return;
    try {
      order_->made =
          new std::thread([work = order_->work, argument = order_->argument] { work(argument); });
      // From here, so that it has its name when its session is made.
      pthread_setname_np(order_->made->native_handle(), "baton-ort");
    } catch (const std::exception&) {
      order_->made = nullptr;  // no thread is to be had: the session fails
    }
    order_->done = true;
    changed_.notify_all();
  }
}

OrtCustomThreadHandle PoolThreads::create(void* self, OrtThreadWorkerFn work, void* argument) {
  auto& threads = *static_cast<PoolThreads*>(self);
  Order order{.work = work, .argument = argument};
  std::unique_lock lock(threads.mutex_);
  threads.changed_.wait(lock, [&] { return threads.order_ == nullptr; });
  threads.order_ = &order;
  threads.changed_.notify_all();
  threads.changed_.wait(lock, [&] { return order.done; });
  threads.order_ = nullptr;
  threads.changed_.notify_all();
  return std::bit_cast<OrtCustomThreadHandle>(order.made);
}

void PoolThreads::join(OrtCustomThreadHandle handle) {
  const std::unique_ptr<std::thread> thread(std::bit_cast<std::thread*>(handle));
  thread->join();
}

}  // namespace baton::adapters::onnx
