#pragma once

#include <chrono>

#include "ports/clock.h"

namespace baton::ports::testing {

// The system's monotonic clock, for tests of threads that really wait. Its wall time stands.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override {
    const std::chrono::nanoseconds time = std::chrono::steady_clock::now().time_since_epoch();
    return Instant::from_ns(time.count());
  }
  [[nodiscard]] WallTime wall() const override { return {}; }
};

}  // namespace baton::ports::testing
