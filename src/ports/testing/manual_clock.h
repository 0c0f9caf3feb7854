#pragma once

#include <atomic>

#include "ports/clock.h"

namespace baton::ports::testing {

// A clock that stands until the test moves it. Any thread.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override { return Instant::from_ns(now_ns_.load()); }
  [[nodiscard]] WallTime wall() const override { return {.unix_ns = now_ns_.load()}; }
  void advance(Duration span) { now_ns_ += span.ns(); }
  void set(Instant now) { now_ns_ = now.ns(); }

 private:
  std::atomic<int64_t> now_ns_ = 1'000'000'000;
};

}  // namespace baton::ports::testing
