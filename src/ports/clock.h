#pragma once

#include "base/time.h"

namespace baton::ports {

// The one way to know the time. `now` is for measuring and deciding, `wall` for showing to people.
// Any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Instant now() const = 0;  // never goes back
  [[nodiscard]] virtual WallTime wall() const = 0;
};

}  // namespace baton::ports
