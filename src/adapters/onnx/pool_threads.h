#pragma once
// The threads of ONNX Runtime's pools. For the files of this room only.

#include <onnxruntime_c_api.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace baton::adapters::onnx {

// A thread inherits the nice value of the one that starts it, and sessions are made by loader
// threads, which are nice. These are started by a thread that is as this object's maker was.
class PoolThreads {
 public:
  PoolThreads();
  ~PoolThreads();
  PoolThreads(const PoolThreads&) = delete;
  PoolThreads& operator=(const PoolThreads&) = delete;

  // The library's callbacks; `self` is a PoolThreads. Any thread; waits until the thread is there.
  // Null when the system gives no more threads.
  static OrtCustomThreadHandle create(void* self, OrtThreadWorkerFn work, void* argument);
  static void join(OrtCustomThreadHandle handle);

 private:
  struct Order {
    OrtThreadWorkerFn work = nullptr;
    void* argument = nullptr;
    std::thread* made = nullptr;  // null when it could not be started
    bool done = false;
  };
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  Order* order_ = nullptr;  // one at a time
  bool stop_ = false;
  std::thread starter_;
};

}  // namespace baton::adapters::onnx
