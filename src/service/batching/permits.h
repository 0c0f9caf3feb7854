#pragma once

#include "policy/batching/permit_ledger.h"
#include "ports/permit_policy.h"

namespace baton::service {

// The permit ledger behind its port, so that adapters and the simulator grant alike.
class LedgerPermits final : public ports::PermitPolicy {
 public:
  explicit LedgerPermits(uint32_t permits) : ledger_(permits) {}

  bool request(ports::PermitTicket ticket, Instant deadline) override {
    return ledger_.request(ticket, deadline);
  }
  bool try_request() override { return ledger_.try_request(); }
  std::optional<ports::PermitTicket> give_back() override { return ledger_.give_back(); }
  [[nodiscard]] bool contended(Instant deadline) const override {
    return ledger_.contended(deadline);
  }

 private:
  policy::PermitLedger ledger_;
};

}  // namespace baton::service
