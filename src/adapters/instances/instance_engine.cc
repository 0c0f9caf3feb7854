#include "adapters/instances/instance_engine.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "adapters/instances/end_text.h"
#include "adapters/instances/placement.h"
#include "base/check.h"

namespace baton::adapters {
namespace {

// A run that misses a terminate() which came just before it began is told again after this long.
constexpr auto kTerminateAgain = std::chrono::milliseconds(50);
// A timed wait is cut into pieces of this length at most.
constexpr Duration kLongestWait = Duration::s(3600);

std::chrono::nanoseconds span(Instant now, Instant until) {
  return std::chrono::nanoseconds(std::clamp(until - now, Duration(), kLongestWait).ns());
}

// Moves the calls of one home out of `ended`; what stays of them there has no home.
std::vector<ports::EndedCall> take_those_of(ports::Executor& home,
                                            std::vector<ports::EndedCall>& ended) {
  const auto is_of_home = [&](const ports::EndedCall& end) { return end.call.call.home == &home; };
  if (std::ranges::all_of(ended, is_of_home)) return std::exchange(ended, {});
  std::vector<ports::EndedCall> together;
  for (ports::EndedCall& end : ended) {
    if (!is_of_home(end)) continue;
    together.push_back(std::move(end));
    end.call.call.home = nullptr;
  }
  return together;
}

}  // namespace

// What is told and freed once the lock is open.
struct InstanceEngine::Outbox {
  std::vector<ports::EndedCall> ended;
  std::vector<ports::DispatchedCall> left;  // by aborted calls
  Result<ports::BatchResult, ports::RunFailure> outcome;

  [[nodiscard]] bool ran() const { return !outcome.has_value() || !outcome->results.empty(); }
  void swap(Outbox& other) {
    ended.swap(other.ended);
    left.swap(other.left);
    if (ran() || other.ran()) std::swap(outcome, other.outcome);
  }
};

// One instance with its thread. Fields but `runtime` are under the engine's lock, or belong to
// whoever runs the batch.
struct InstanceEngine::Worker {
  ports::InstanceIndex index = 0;
  std::unique_ptr<ports::RuntimeInstance> runtime;
  std::condition_variable woken;
  bool asked = true;     // the dispatcher expects this instance to ask
  bool leaving = false;  // it ends its run and is gone then
  bool active = false;   // runs a batch, on its own thread or on a caller's
  Instant ask_again = Instant::never();
  ports::Batch batch;
  std::vector<const InferRequest*> inputs;
  Outbox outbox;
  Placement placement;
  bool placed = false;
  std::thread thread;
};

// A permit that is given back at the end of its scope at the latest.
class InstanceEngine::Permit {
 public:
  explicit Permit(CpuPermits& permits) : permits_(permits) {}
  ~Permit() { release(); }
  Permit(const Permit&) = delete;
  Permit& operator=(const Permit&) = delete;

  [[nodiscard]] bool held() const { return held_; }
  void acquire(Instant deadline) {
    permits_.acquire(deadline);
    held_ = true;
  }
  void release() {
    if (held_) permits_.release();
    held_ = false;
  }

 private:
  CpuPermits& permits_;
  bool held_ = false;
};

InstanceEngine::InstanceEngine(std::unique_ptr<ports::Dispatcher> dispatcher,
                               std::vector<std::unique_ptr<ports::RuntimeInstance>> instances,
                               std::shared_ptr<CpuPermits> permits, const ports::Clock& clock,
                               InstanceEngineOptions options)
    : clock_(clock),
      options_(std::move(options)),
      permits_(std::move(permits)),
      dispatcher_(std::move(dispatcher)) {
  BATON_CHECK(!instances.empty());
  for (auto& runtime : instances) {
    Worker& worker = take_worker(static_cast<ports::InstanceIndex>(workers_.size()));
    worker.runtime = std::move(runtime);
  }
  for (auto& worker : workers_) start_thread(*worker);
}

// A new one, or one whose thread has ended: callers may still hold it to notify it. Before the
// threads start, or under the lock.
InstanceEngine::Worker& InstanceEngine::take_worker(ports::InstanceIndex index) {
  if (index == workers_.size()) workers_.push_back(std::make_unique<Worker>());
  Worker& worker = *workers_[index];
  BATON_CHECK(!worker.thread.joinable() && !worker.active);
  worker.index = index;
  worker.asked = true;
  worker.leaving = false;
  worker.placed = false;
  worker.ask_again = Instant::never();
  worker.batch.members.reserve(64);
  worker.inputs.reserve(64);
  worker.outbox.ended.reserve(64);
  return worker;
}

void InstanceEngine::start_thread(Worker& worker) {
  const std::string name = options_.name + "#" + std::to_string(worker.index);
  const auto& cpus = options_.cpus;
  const int cpu = cpus.empty() ? -1 : cpus[worker.index % cpus.size()];
  worker.thread = std::thread([this, name, cpu, &worker] {
    Placement placement = place_this_thread(name, cpu);
    {
      const std::lock_guard lock(mutex_);
      worker.placement = std::move(placement);
      worker.placed = true;
    }
    placed_.notify_all();
    serve(worker);
  });
}

void InstanceEngine::add_instances(std::vector<std::unique_ptr<ports::RuntimeInstance>> instances) {
  for (auto& runtime : instances) {
    const std::lock_guard lock(mutex_);
    Worker& worker = take_worker(dispatcher_->add_instance(clock_.now()));
    worker.runtime = std::move(runtime);
    start_thread(worker);  // it waits for the lock
  }
}

void InstanceEngine::keep_instances(size_t count) {
  std::vector<Worker*> leaving;
  {
    const std::lock_guard lock(mutex_);
    size_t present = static_cast<size_t>(std::ranges::count_if(
        workers_, [](const auto& worker) { return worker->runtime != nullptr; }));
    for (size_t i = workers_.size(); i > 0 && present > std::max<size_t>(count, 1); --i) {
      Worker& worker = *workers_[i - 1];
      if (!worker.runtime) continue;
      worker.leaving = true;
      worker.woken.notify_one();
      leaving.push_back(&worker);
      --present;
    }
  }
  for (Worker* worker : leaving) worker->thread.join();
  for (Worker* worker : leaving) {
    std::unique_ptr<ports::RuntimeInstance> freed;  // outside the lock
    const std::lock_guard lock(mutex_);
    freed = std::move(worker->runtime);
  }
}

InstanceEngine::~InstanceEngine() {
  stop(clock_.now());
}

void InstanceEngine::serve(Worker& worker) {
  Permit permit(*permits_);
  Outbox told;  // this thread's: while it tells, the instance may be lent to a caller
  std::unique_lock lock(mutex_);
  while (true) {
    wait_for_work(worker, lock);
    if (exit_ || worker.leaving) break;
    const Instant urgency = dispatcher_->most_urgent();
    if (!urgency.is_never() && !permit.held()) {
      dispatcher_->will_ask(worker.index);
      // Asked for before the batch is formed, so that those who arrive while the device is busy
      // still join it.
      told.swap(worker.outbox);
      lock.unlock();
      hand_out(told);
      permit.acquire(urgency);
      lock.lock();
    }
    const bool formed = take_batch(worker);
    if (!formed) permit.release();
    told.swap(worker.outbox);
    if (!formed && told.ended.empty() && told.left.empty()) continue;
    lock.unlock();
    hand_out(told);
    if (formed) compute(worker);
    lock.lock();
    if (!formed) continue;
    finish_batch(worker);
    // Without others waiting the next batch is taken in this critical section and under this
    // permit.
    if (permits_->contended(dispatcher_->most_urgent())) permit.release();
  }
  if (!exit_) {
    const ports::NextBatch next = dispatcher_->remove_instance(worker.index, clock_.now());
    if (next.wake) wake(next.instance);
  }
  told.swap(worker.outbox);
  lock.unlock();
  hand_out(told);
}

void InstanceEngine::wait_for_work(Worker& worker, std::unique_lock<std::mutex>& lock) {
  const auto ready = [&] { return exit_ || (!worker.active && (worker.asked || worker.leaving)); };
  while (!ready()) {
    if (worker.active || worker.ask_again.is_never()) {
      worker.woken.wait(lock);
      continue;
    }
    const Instant now = clock_.now();
    if (now >= worker.ask_again) return;
    worker.woken.wait_for(lock, span(now, worker.ask_again));
  }
}

// Under the lock.
bool InstanceEngine::take_batch(Worker& worker) {
  const ports::NextBatch next =
      dispatcher_->next(worker.index, clock_.now(), worker.batch, worker.outbox.ended);
  worker.asked = false;
  worker.ask_again = next.ask_again;
  if (next.wake) wake(next.instance);
  worker.active = worker.batch.formed();
  if (worker.active) ++active_;
  if (active_ == 0) drained_.notify_all();
  return worker.active;
}

// Outside the lock.
void InstanceEngine::compute(Worker& worker) {
  worker.inputs.clear();
  for (const ports::DispatchedCall& member : worker.batch.members) {
    worker.inputs.push_back(member.call.request.get());
  }
  worker.outbox.outcome = worker.runtime->run(worker.inputs);
  worker.outbox.ended.reserve(worker.batch.members.size());
}

// Under the lock.
void InstanceEngine::finish_batch(Worker& worker) {
  Outbox& outbox = worker.outbox;
  dispatcher_->finish(worker.index, worker.batch, outbox.outcome, clock_.now(), outbox.ended);
  outbox.left.swap(worker.batch.members);
  worker.active = false;
  worker.asked = true;
  --active_;
  if (active_ == 0) drained_.notify_all();
}

// Outside the lock.
void InstanceEngine::hand_out(Outbox& outbox) const {
  outbox.left.clear();
  if (outbox.ran()) outbox.outcome = {};
  deliver(outbox.ended);
}

// One post for each home, so that a batch of one worker's calls wakes it once.
void InstanceEngine::deliver(std::vector<ports::EndedCall>& ended) const {
  for (ports::EndedCall& end : ended) {
    Refusal& refusal = end.end.refusal;
    if (end.end.reason == EndReason::kOk || !refusal.message.empty()) continue;
    refusal.message = end_text(end.end.reason);
  }
  for (size_t i = 0; i < ended.size(); ++i) {
    ports::Executor* home = ended[i].call.call.home;
    if (home == nullptr) continue;  // went with an earlier one
    home->post([together = take_those_of(*home, ended)]() mutable {
      for (ports::EndedCall& end : together)
        end.call.events->on_end(end.call.id, std::move(end.end));
    });
  }
  ended.clear();
}

ports::StartedCall InstanceEngine::start(ports::EngineCall call, ports::EngineEvents& events) {
  ports::DispatchedCall dispatched;
  dispatched.call = std::move(call);
  dispatched.events = &events;
  ports::Submitted submitted;
  Worker* woken = nullptr;
  {
    std::unique_lock lock(mutex_);
    submitted = dispatcher_->submit(dispatched, clock_.now());
    if (submitted.accepted && submitted.inline_run && permits_->try_acquire()) {
      run_inline(*workers_[submitted.instance], lock);
    } else if (submitted.accepted && submitted.wake) {
      woken = workers_[submitted.instance].get();
      woken->asked = true;
    }
  }
  if (woken != nullptr) woken->woken.notify_one();  // outside the lock, which it would wait for
  if (!submitted.accepted) refuse(std::move(dispatched), submitted);
  return {.id = submitted.id, .queue_deadline = submitted.queue_deadline};
}

// Lends the calling thread to an idle instance for one batch that is shorter than waking the
// instance's own thread.
void InstanceEngine::run_inline(Worker& worker, std::unique_lock<std::mutex>& lock) {
  if (take_batch(worker)) {
    lock.unlock();
    compute(worker);
    lock.lock();
    finish_batch(worker);
    if (dispatcher_->queued_calls() == 0) take_batch(worker);  // nothing: marks it idle
  }
  if (worker.asked || worker.leaving) worker.woken.notify_one();
  Outbox told;
  told.swap(worker.outbox);
  lock.unlock();
  permits_->release();
  hand_out(told);
}

void InstanceEngine::refuse(ports::DispatchedCall call, const ports::Submitted& submitted) const {
  ports::EngineEnd end;
  end.reason = submitted.reason;
  end.refusal = {.reason = submitted.reason,
                 .message = dispatcher_->refusal_text(submitted.limit),
                 .retry_after = submitted.retry_after};
  end.timings.ended = clock_.now();
  call.call.home->post([id = submitted.id, events = call.events, end = std::move(end)]() mutable {
    events->on_end(id, std::move(end));
  });
}

void InstanceEngine::abort(ports::CallId id, EndReason reason, ports::AbortScope scope) {
  std::vector<ports::EndedCall> ended;
  ended.reserve(1);
  {
    const std::lock_guard lock(mutex_);
    const auto aborted = dispatcher_->abort(id, reason, scope, clock_.now(), ended);
    // Under the lock, so that the instance cannot have begun a later run.
    if (aborted.terminate) workers_[aborted.instance]->runtime->terminate();
    if (active_ == 0) drained_.notify_all();
  }
  deliver(ended);
}

void InstanceEngine::stop_accepting() {
  const std::lock_guard lock(mutex_);
  dispatcher_->stop_accepting(EndReason::kShuttingDown);
}

void InstanceEngine::end_calls(Instant deadline) {
  std::vector<ports::EndedCall> ended;
  {
    std::unique_lock lock(mutex_);
    dispatcher_->stop_accepting(EndReason::kShuttingDown);
    const auto drained = [&] { return dispatcher_->queued_calls() == 0 && active_ == 0; };
    for (Instant now = clock_.now(); !drained() && now < deadline; now = clock_.now()) {
      drained_.wait_for(lock, span(now, deadline));
    }
    dispatcher_->close(EndReason::kShuttingDown, clock_.now(), ended);
    terminate_active();
  }
  deliver(ended);
}

// Under the lock.
void InstanceEngine::terminate_active() {
  for (auto& worker : workers_) {
    if (worker->active) worker->runtime->terminate();
  }
}

void InstanceEngine::stop(Instant deadline) {
  end_calls(deadline);
  {
    std::unique_lock lock(mutex_);
    while (active_ > 0) {
      drained_.wait_for(lock, kTerminateAgain);
      terminate_active();
    }
    exit_ = true;
    for (auto& worker : workers_) worker->woken.notify_all();
  }
  for (auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
}

void InstanceEngine::free_instances() {
  std::vector<std::unique_ptr<ports::RuntimeInstance>> freed;
  const std::lock_guard lock(mutex_);
  BATON_CHECK(exit_ && active_ == 0);
  for (auto& worker : workers_) freed.push_back(std::move(worker->runtime));
}

void stop_together(std::span<InstanceEngine* const> engines, Instant deadline) {
  for (InstanceEngine* engine : engines) engine->stop_accepting();
  for (InstanceEngine* engine : engines) engine->end_calls(deadline);
  for (InstanceEngine* engine : engines) engine->stop(deadline);
}

void InstanceEngine::inspect(const std::function<void(const ports::Dispatcher&)>& look) const {
  const std::lock_guard lock(mutex_);
  look(*dispatcher_);
}

ports::EngineStats InstanceEngine::stats() const {
  const std::lock_guard lock(mutex_);
  return dispatcher_->stats();
}

std::vector<BatchSizeTotals> InstanceEngine::batch_totals() const {
  const std::lock_guard lock(mutex_);
  return dispatcher_->batch_totals();
}

LatencyCurve InstanceEngine::curve() const {
  const std::lock_guard lock(mutex_);
  return dispatcher_->curve();
}

size_t InstanceEngine::queued_calls() const {
  const std::lock_guard lock(mutex_);
  return dispatcher_->queued_calls();
}

size_t InstanceEngine::running_calls() const {
  const std::lock_guard lock(mutex_);
  return dispatcher_->running_calls();
}

void InstanceEngine::nudge() {
  const std::lock_guard lock(mutex_);
  for (auto& worker : workers_) worker->woken.notify_all();
}

std::vector<Placement> InstanceEngine::placements() const {
  std::unique_lock lock(mutex_);
  placed_.wait(lock, [&] { return std::ranges::all_of(workers_, &Worker::placed); });
  std::vector<Placement> placements;
  placements.reserve(workers_.size());
  for (const auto& worker : workers_) placements.push_back(worker->placement);
  return placements;
}

void InstanceEngine::wake(ports::InstanceIndex instance) {
  Worker& worker = *workers_[instance];
  worker.asked = true;
  worker.woken.notify_one();
}

}  // namespace baton::adapters
