#pragma once
// A model version in process: the lock around its dispatcher and one thread per instance.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "adapters/instances/cpu_permits.h"
#include "ports/clock.h"
#include "ports/dispatcher.h"

namespace baton::adapters {

struct InstanceEngineOptions {
  std::string name;       // of the threads: "<name>#<instance>", cut to 15 bytes
  std::vector<int> cpus;  // instance i is pinned to cpus[i % size]; empty: not pinned
};

// Where an instance's thread may run, as the kernel reports it after pinning.
struct Placement {
  std::string thread;
  std::vector<int> cpus;
  bool pinned_as_asked = true;
};

// Any thread may start and abort. Events arrive on each call's home, never within start() or
// abort().
class InstanceEngine final : public ports::EnginePort {
 public:
  InstanceEngine(std::unique_ptr<ports::Dispatcher> dispatcher,
                 std::vector<std::unique_ptr<ports::RuntimeInstance>> instances,
                 std::shared_ptr<CpuPermits> permits, const ports::Clock& clock,
                 InstanceEngineOptions options);
  ~InstanceEngine() override;  // stops at once if stop() was not called

  ports::StartedCall start(ports::EngineCall call, ports::EngineEvents& events) override;
  void abort(ports::CallId id, EndReason reason, ports::AbortScope scope) override;
  [[nodiscard]] ports::EngineStats stats() const override;
  [[nodiscard]] std::vector<BatchSizeTotals> batch_totals() const override;
  [[nodiscard]] LatencyCurve curve() const override;

  // Takes no more calls, serves those it has until `deadline`, ends the rest and terminates what
  // runs. Returns when every thread has ended. Blocks: not on a worker. Once, or again without
  // effect.
  void stop(Instant deadline);

  // The parts of stop(), for several engines side by side: takes no more calls; serves those it has
  // until `deadline`, ends the rest and asks what runs to end. The second blocks until `deadline`
  // at most; stop() follows.
  void stop_accepting();
  void end_calls(Instant deadline);

  // Threads for more instances, which serve from now on. Any thread, not beside stop().
  void add_instances(std::vector<std::unique_ptr<ports::RuntimeInstance>> instances);
  // All but `count` instances leave: each ends its run first. Blocks until they have gone. Any
  // thread that may block, not beside stop().
  void keep_instances(size_t count);

  // After stop(): frees the instances. Whoever still holds the engine finds it empty.
  void free_instances();

  // Runs `look` under the lock: for counts and curves, not for work.
  void inspect(const std::function<void(const ports::Dispatcher&)>& look) const;
  [[nodiscard]] size_t queued_calls() const;
  [[nodiscard]] size_t running_calls() const;
  // Asks every instance's thread to look again: for tests whose clock moves by hand.
  void nudge();
  [[nodiscard]] std::vector<Placement> placements() const;

 private:
  struct Worker;
  struct Outbox;
  class Permit;

  void start_thread(Worker& worker);
  Worker& take_worker(ports::InstanceIndex index);
  void serve(Worker& worker);
  void wait_for_work(Worker& worker, std::unique_lock<std::mutex>& lock);
  bool take_batch(Worker& worker);
  void compute(Worker& worker);
  void finish_batch(Worker& worker);
  void run_inline(Worker& worker, std::unique_lock<std::mutex>& lock);
  void wake(ports::InstanceIndex instance);
  void terminate_active();
  void hand_out(Outbox& outbox) const;
  void refuse(ports::DispatchedCall call, const ports::Submitted& submitted) const;
  void deliver(std::vector<ports::EndedCall>& ended) const;

  const ports::Clock& clock_;
  const InstanceEngineOptions options_;
  std::shared_ptr<CpuPermits> permits_;
  mutable std::mutex mutex_;
  std::condition_variable drained_;
  mutable std::condition_variable placed_;
  std::unique_ptr<ports::Dispatcher> dispatcher_;  // under mutex_
  std::vector<std::unique_ptr<Worker>> workers_;
  size_t active_ = 0;  // batches that run
  bool exit_ = false;
};

// stop() of all of them, side by side: the longest counts, not the sum.
void stop_together(std::span<InstanceEngine* const> engines, Instant deadline);

}  // namespace baton::adapters
