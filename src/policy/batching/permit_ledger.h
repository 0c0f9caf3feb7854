#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "base/time.h"

namespace baton::policy {

// At most `permits` runs at once on one device, across models; waiters are served by deadline, then
// by ticket. State that its caller owns and locks.
class PermitLedger {
 public:
  explicit PermitLedger(uint32_t permits) : free_(permits) {}

  bool request(uint64_t ticket, Instant deadline);  // false: waits
  bool try_request();
  std::optional<uint64_t> give_back();  // who holds the permit now
  [[nodiscard]] bool contended(Instant deadline) const;
  [[nodiscard]] size_t waiting() const { return waiters_.size(); }

 private:
  struct Waiter {
    Instant deadline;
    uint64_t ticket = 0;
    auto operator<=>(const Waiter&) const = default;
  };
  uint32_t free_;
  std::set<Waiter> waiters_;
};

}  // namespace baton::policy
