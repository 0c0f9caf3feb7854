#include "adapters/instances/cpu_permits.h"

#include <algorithm>

#include "base/check.h"

namespace baton::adapters {

CpuPermits::CpuPermits(std::unique_ptr<ports::PermitPolicy> policy) : policy_(std::move(policy)) {}

CpuPermits::~CpuPermits() {
  BATON_CHECK(waiters_.empty());
}

bool CpuPermits::try_acquire() {
  const std::lock_guard lock(mutex_);
  return policy_->try_request();
}

void CpuPermits::acquire(Instant deadline) {
  std::unique_lock lock(mutex_);
  Waiter self;
  self.ticket = next_ticket_++;
  if (policy_->request(self.ticket, deadline)) return;
  waiters_.push_back(&self);
  self.woken.wait(lock, [&] { return self.granted; });
  std::erase(waiters_, &self);
}

void CpuPermits::release() {
  const std::lock_guard lock(mutex_);
  const auto ticket = policy_->give_back();
  if (!ticket) return;
  const auto found = std::ranges::find(waiters_, *ticket, &Waiter::ticket);
  BATON_CHECK(found != waiters_.end());
  (*found)->granted = true;
  (*found)->woken.notify_one();  // under the lock: the waiter's frame must still stand
}

bool CpuPermits::contended(Instant deadline) const {
  const std::lock_guard lock(mutex_);
  return policy_->contended(deadline);
}

}  // namespace baton::adapters
