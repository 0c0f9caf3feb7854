#pragma once
// What must hold in every simulated run. O(1) an event, amortised.

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/time.h"
#include "domain/end_reason.h"
#include "ports/dispatcher.h"

namespace baton::sim {

struct Violation {
  enum class Kind : uint8_t {
    kLost,        // accepted, and neither queued, running nor ended
    kDoubled,     // ended twice
    kLate,        // told of its deadline too late, or begun after it
    kStarved,     // queued beyond the bound
    kLeaked,      // something is left when all is over
    kBadBatch,    // over the maximum, or layouts mixed
    kDisordered,  // answered before an earlier one of a model that keeps the order
  };
  Kind kind = Kind::kLost;
  Instant when;
  std::string text;
};
[[nodiscard]] std::string_view violation_name(Violation::Kind kind);

struct CheckerLimits {
  Duration starvation_bound;
  Duration lateness = Duration::ms(1);  // what a timer is allowed
};

// A request's number counts from 1 in order of submission.
class Checker {
 public:
  explicit Checker(CheckerLimits limits) : limits_(limits) {}

  void on_accepted(uint64_t number, Instant queue_deadline, Instant deadline, Instant now);
  void on_refused(uint64_t number);
  void on_batch(const ports::Batch& batch, uint64_t max_items, bool merge, Instant now);
  void on_retried(const ports::Batch& batch);
  void on_end(uint64_t number, EndReason reason, Instant now);
  // An answer of a model that keeps the order; `newest`: of its answers until then.
  void on_ordered_answer(uint64_t number, uint64_t& newest, Instant now);
  // After each event, with what the dispatchers say that they hold.
  void on_event(uint64_t queued, uint64_t running, Instant now);
  // When everything has been drained; `requests_alive` counts payloads that somebody still holds.
  void on_over(uint64_t queued, uint64_t running, uint64_t requests_alive, Instant now);

  [[nodiscard]] bool failed() const { return !violations_.empty(); }
  [[nodiscard]] const std::vector<Violation>& violations() const { return violations_; }
  [[nodiscard]] uint64_t accepted() const { return accepted_; }
  [[nodiscard]] uint64_t ended() const { return ended_; }

 private:
  enum class State : uint8_t { kRefused, kQueued, kRunning, kEnded };
  struct Call {
    State state = State::kRefused;
    Instant submitted;
    Instant queue_deadline;
    Instant deadline;
  };
  Call* find(uint64_t number);
  void violate(Violation::Kind kind, Instant when, std::string text);
  void forget_ended();

  CheckerLimits limits_;
  std::deque<Call> calls_;  // from number first_ on
  uint64_t first_ = 1;
  uint64_t oldest_queued_ = 1;
  uint64_t accepted_ = 0;
  uint64_t ended_ = 0;
  std::vector<Violation> violations_;  // the first few
};

}  // namespace baton::sim
