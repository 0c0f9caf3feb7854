#include "policy/batching/permit_ledger.h"

namespace baton::policy {

bool PermitLedger::request(uint64_t ticket, Instant deadline) {
  if (try_request()) return true;
  waiters_.insert({deadline, ticket});
  return false;
}

bool PermitLedger::try_request() {
  if (free_ == 0) return false;
  --free_;
  return true;
}

std::optional<uint64_t> PermitLedger::give_back() {
  if (waiters_.empty()) {
    ++free_;
    return std::nullopt;
  }
  const uint64_t ticket = waiters_.begin()->ticket;
  waiters_.erase(waiters_.begin());
  return ticket;
}

bool PermitLedger::contended(Instant deadline) const {
  return !waiters_.empty() && waiters_.begin()->deadline <= deadline;
}

}  // namespace baton::policy
