#include "adapters/jobs/job_pool.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace baton::adapters::jobs {
namespace {

// A run that misses an interrupt which came just before it began is told again after this long.
constexpr auto kInterruptAgain = std::chrono::milliseconds(50);

}  // namespace

bool JobPool::Stop::requested() const {
  const std::lock_guard lock(mutex_);
  return requested_;
}

void JobPool::Stop::run(FunctionRef<void()> work, FunctionRef<void()> interrupt) {
  {
    const std::lock_guard lock(mutex_);
    if (requested_) return;
    interrupts_.push_back(&interrupt);
  }
  work();
  const std::lock_guard lock(mutex_);
  std::erase(interrupts_, &interrupt);
}

void JobPool::Stop::request() {
  const std::lock_guard lock(mutex_);  // held while interrupting: what they reach still stands
  requested_ = true;
  for (const FunctionRef<void()>* interrupt : interrupts_) (*interrupt)();
}

JobPool::JobPool(const JobPoolOptions& options) : options_(options) {
  for (size_t i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { work(); });
}

JobPool::~JobPool() {
  cancel();
  {
    std::unique_lock lock(mutex_);
    while (running_ > 0) {
      if (idle_.wait_for(lock, kInterruptAgain) == std::cv_status::timeout) stop_.request();
    }
  }
  for (std::thread& thread : threads_) thread.join();
}

void JobPool::cancel() {
  std::deque<Job> dropped;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    dropped.swap(jobs_);
  }
  woken_.notify_all();
  stop_.request();
}

void JobPool::run(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    jobs_.push_back(std::move(job));
  }
  woken_.notify_one();
}

void JobPool::work() {
  pthread_setname_np(pthread_self(), options_.name);
  // On Linux a nice value belongs to a thread.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), options_.nice);
  std::unique_lock lock(mutex_);
  for (;;) {
    woken_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (ending_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    ++running_;
    lock.unlock();
    job(stop_);
    job = nullptr;
    lock.lock();
    if (--running_ == 0) idle_.notify_all();
  }
}

}  // namespace baton::adapters::jobs
