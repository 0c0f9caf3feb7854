#pragma once

#include "base/time.h"
#include "ports/clock.h"

namespace baton::adapters {

// How long this machine takes to wake a sleeping thread and be answered: the first quartile of a
// few dozen exchanges between two threads, 1 µs to 100 µs. Blocks for some milliseconds; at start.
[[nodiscard]] Duration measure_hand_over(const ports::Clock& clock);

}  // namespace baton::adapters
