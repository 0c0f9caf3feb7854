#pragma once

#include <cstdint>

#include "base/time.h"

namespace baton::policy {

// How many items a second arrive, as an exponentially decayed count: rate(t) = sum of exp(-(t -
// t_i) / window) / window over the arrivals t_i. O(1) an arrival. Silence lowers the rate, so a
// wait that was worth it ends by itself.
class ArrivalRate {
 public:
  explicit ArrivalRate(Duration window = Duration::ms(200)) : window_(window) {}

  void on_arrival(uint64_t items, Instant now);
  // Items a second. Corrected for the time observed, so that the first second of a model is not
  // read as a lull.
  [[nodiscard]] double per_second(Instant now) const;

 private:
  Duration window_;
  double count_ = 0;  // decayed to last_
  Instant first_;
  Instant last_;
  bool any_ = false;
};

}  // namespace baton::policy
