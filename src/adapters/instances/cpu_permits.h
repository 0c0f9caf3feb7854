#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "ports/permit_policy.h"

namespace baton::adapters {

// What may compute at once on the machine's CPUs, shared by every engine on them, so that ten
// models on two cores do not fight. Any thread.
class CpuPermits {
 public:
  explicit CpuPermits(std::unique_ptr<ports::PermitPolicy> policy);
  ~CpuPermits();

  [[nodiscard]] bool try_acquire();
  void acquire(Instant deadline);  // blocks until granted: by deadline, then by order of asking
  void release();
  // True when another waits that is at least as urgent.
  [[nodiscard]] bool contended(Instant deadline) const;

 private:
  struct Waiter {
    ports::PermitTicket ticket = 0;
    bool granted = false;
    std::condition_variable woken;
  };

  mutable std::mutex mutex_;
  std::unique_ptr<ports::PermitPolicy> policy_;
  std::vector<Waiter*> waiters_;  // few: at most the instance threads
  ports::PermitTicket next_ticket_ = 1;
};

}  // namespace baton::adapters
