#pragma once
// Internal to this room: answers that the library has not sent yet.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/time.h"
#include "ports/clock.h"
#include "ports/executor.h"

namespace baton::adapters::grpc_api {

// One answer on its way: a base of its call, for its WriteWatch alone.
class WatchedWrite {
 protected:
  WatchedWrite() = default;
  ~WatchedWrite() = default;

 private:
  friend class WriteWatch;
  // What keeps the call alive. Asked only before the library has reported.
  virtual std::shared_ptr<WatchedWrite> keep() = 0;
  virtual void cut_off() = 0;

  WatchedWrite* before_ = nullptr;
  WatchedWrite* after_ = nullptr;
  Instant late_;
  bool watched_ = false;
  bool sent_ = false;
};

// Cuts off the clients of one worker that do not take their answers, which count against others'
// until then. One timer for all, armed while answers are on their way and for one turn after.
class WriteWatch : public std::enable_shared_from_this<WriteWatch> {
 public:
  // `stall`: how long each MiB of an answer may take. `stalls` counts those cut off; null: nobody
  // asks.
  WriteWatch(ports::Timers& timers, const ports::Clock& clock, Duration stall,
             std::atomic<uint64_t>* stalls)
      : timers_(timers), clock_(clock), stall_(stall), stalls_(stalls) {}

  // An answer of `bytes` is on its way; it is cut off at most a quarter of the stall late. On the
  // worker.
  void watch(WatchedWrite& write, size_t bytes);
  // The library has reported, perhaps before watch(). Any thread.
  void sent(WatchedWrite& write);

 private:
  void unlink(WatchedWrite& write);
  void arm(Instant when);
  void sweep();

  ports::Timers& timers_;
  const ports::Clock& clock_;
  const Duration stall_;
  std::atomic<uint64_t>* const stalls_;
  std::mutex mutex_;  // of the list
  WatchedWrite* first_ = nullptr;
  bool armed_ = false;  // on the worker
};

}  // namespace baton::adapters::grpc_api
