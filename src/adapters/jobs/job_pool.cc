#include "adapters/jobs/job_pool.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace baton::adapters::jobs {
namespace {

// On Linux a nice value belongs to a thread: loading yields to serving (server#8117).
constexpr int kNice = 10;

}  // namespace

JobPool::JobPool(size_t threads) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

JobPool::~JobPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    jobs_.clear();
  }
  woken_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void JobPool::run(std::move_only_function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    jobs_.push_back(std::move(job));
  }
  woken_.notify_one();
}

void JobPool::work() {
  pthread_setname_np(pthread_self(), "baton-loader");
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice);
  std::unique_lock lock(mutex_);
  for (;;) {
    woken_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    auto job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
  }
}

}  // namespace baton::adapters::jobs
