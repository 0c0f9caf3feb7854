#include "adapters/transport/steady_clock.h"

#include <chrono>

namespace baton::adapters::transport {
namespace {

template <class Clock>
int64_t nanoseconds() {
  const auto since_epoch = Clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count();
}

}  // namespace

Instant SteadyClock::now() const {
  return Instant::from_ns(nanoseconds<std::chrono::steady_clock>());
}

WallTime SteadyClock::wall() const {
  return WallTime{nanoseconds<std::chrono::system_clock>()};
}

}  // namespace baton::adapters::transport
