#pragma once
// When the requests of an open-loop run are to be sent, as offsets from its start, ascending.

#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "base/time.h"

namespace baton::adapters::load {

using Schedule = std::vector<Duration>;

// `rate` in requests a second, > 0.
[[nodiscard]] Schedule constant_arrivals(double rate, Duration length);
[[nodiscard]] Schedule poisson_arrivals(double rate, Duration length, Random& random);

// The column `arrival_s` of a CSV text with a header line, sorted; `rate` > 0 stretches or squeezes
// time so that the whole trace has this mean rate. What lies behind `length` is left out. Error: a
// sentence with the line.
[[nodiscard]] Result<Schedule, std::string> trace_arrivals(std::string_view csv, double rate,
                                                           Duration length);

}  // namespace baton::adapters::load
