#pragma once
// Which requests are traced: what holds, and what was said of it.

#include <cstdint>
#include <optional>

namespace baton {

struct TraceSettings {
  bool timestamps = false;     // else: off
  uint64_t rate = 1000;        // of so many requests of a model one is traced, from 1
  int64_t count = -1;          // so many more traces; -1: without end
  uint64_t log_frequency = 0;  // traces in one file; 0: all are in one

  bool operator==(const TraceSettings&) const = default;
};

// What clients have set of the server or of one model. Absent: what stands behind it holds, the
// server's for a model, the defaults for the server.
struct TraceOverrides {
  std::optional<bool> timestamps{};
  std::optional<uint64_t> rate{};
  std::optional<int64_t> count{};
  std::optional<uint64_t> log_frequency{};

  bool operator==(const TraceOverrides&) const = default;
  [[nodiscard]] TraceSettings over(const TraceSettings& behind) const {
    return {timestamps.value_or(behind.timestamps), rate.value_or(behind.rate),
            count.value_or(behind.count), log_frequency.value_or(behind.log_frequency)};
  }
};

}  // namespace baton
