#pragma once
// Time as an own integer type in nanoseconds, so that live and simulated runs compute alike.

#include <compare>
#include <cstdint>
#include <limits>

namespace baton {

// A span of time, in nanoseconds. May be negative.
class Duration {
 public:
  constexpr Duration() = default;
  [[nodiscard]] static constexpr Duration ns(int64_t n) { return Duration(n); }
  [[nodiscard]] static constexpr Duration us(int64_t n) { return Duration(n * 1'000); }
  [[nodiscard]] static constexpr Duration ms(int64_t n) { return Duration(n * 1'000'000); }
  [[nodiscard]] static constexpr Duration s(int64_t n) { return Duration(n * 1'000'000'000); }
  // Rounds towards zero; the caller keeps |seconds| below 292 years.
  [[nodiscard]] static constexpr Duration from_seconds(double seconds) {
    return Duration(static_cast<int64_t>(seconds * 1e9));
  }
  [[nodiscard]] static constexpr Duration max() {
    return Duration(std::numeric_limits<int64_t>::max());
  }

  [[nodiscard]] constexpr int64_t ns() const { return ns_; }
  [[nodiscard]] constexpr int64_t us() const { return ns_ / 1'000; }
  [[nodiscard]] constexpr int64_t ms() const { return ns_ / 1'000'000; }
  [[nodiscard]] constexpr double seconds() const { return static_cast<double>(ns_) * 1e-9; }

  constexpr auto operator<=>(const Duration&) const = default;
  constexpr Duration operator+(Duration other) const { return Duration(ns_ + other.ns_); }
  constexpr Duration operator-(Duration other) const { return Duration(ns_ - other.ns_); }
  constexpr Duration operator-() const { return Duration(-ns_); }
  constexpr Duration operator*(int64_t n) const { return Duration(ns_ * n); }
  constexpr Duration operator/(int64_t n) const { return Duration(ns_ / n); }
  constexpr Duration& operator+=(Duration other) {
    ns_ += other.ns_;
    return *this;
  }

 private:
  explicit constexpr Duration(int64_t n) : ns_(n) {}
  int64_t ns_ = 0;
};

// A point on the monotonic clock, in nanoseconds since an epoch that only the clock knows.
class Instant {
 public:
  constexpr Instant() = default;
  [[nodiscard]] static constexpr Instant from_ns(int64_t n) { return Instant(n); }
  // Later than every real instant: "never", as a deadline.
  [[nodiscard]] static constexpr Instant never() {
    return Instant(std::numeric_limits<int64_t>::max());
  }

  [[nodiscard]] constexpr int64_t ns() const { return ns_; }
  [[nodiscard]] constexpr bool is_never() const { return *this == never(); }

  constexpr auto operator<=>(const Instant&) const = default;
  constexpr Duration operator-(Instant other) const { return Duration::ns(ns_ - other.ns_); }
  // Saturates at never().
  constexpr Instant operator+(Duration d) const {
    if (d.ns() > 0 && ns_ > std::numeric_limits<int64_t>::max() - d.ns()) return never();
    return Instant(ns_ + d.ns());
  }
  constexpr Instant operator-(Duration d) const { return *this + (-d); }

 private:
  explicit constexpr Instant(int64_t n) : ns_(n) {}
  int64_t ns_ = 0;
};

// Wall-clock time for people and logs, in nanoseconds since 1970-01-01 UTC. Never used to decide.
struct WallTime {
  int64_t unix_ns = 0;
};

}  // namespace baton
