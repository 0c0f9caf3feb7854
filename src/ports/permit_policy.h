#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace baton::ports {

// Who waits for a permit. Smaller numbers asked earlier.
using PermitTicket = uint64_t;

// Who may compute on a device at once, across models. Pure: its caller holds a lock. Implemented by
// service/batching.
class PermitPolicy {
 public:
  virtual ~PermitPolicy() = default;
  // True: granted now. False: `ticket` waits and a later give_back() names it.
  virtual bool request(PermitTicket ticket, Instant deadline) = 0;
  // A permit is granted without waiting or not at all.
  virtual bool try_request() = 0;
  // One permit comes back; it passes to the returned ticket: the earliest deadline, then the
  // smallest ticket.
  virtual std::optional<PermitTicket> give_back() = 0;
  // True when somebody waits whose deadline is at or before `deadline`: a holder does not keep its
  // permit for another run.
  [[nodiscard]] virtual bool contended(Instant deadline) const = 0;
};

}  // namespace baton::ports
