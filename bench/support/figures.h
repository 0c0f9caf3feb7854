#pragma once
// What every benchmark program here says in the same way: medians over interleaved windows, and one
// line of JSON a figure, which bench/report collects.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "base/result.h"

namespace bench {

// CI runs each program once in its short mode, so that it cannot rot; its numbers mean nothing.
inline bool smoke() {
  return std::getenv("BATON_BENCH_SMOKE") != nullptr;
}

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

inline double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[std::min(values.size() - 1,
                         static_cast<size_t>(q * static_cast<double>(values.size())))];
}

struct Figure {
  std::string name;
  std::string method;
  double measured = 0;
  double to_reach = 0;
  bool at_most = true;  // else at least
  std::string detail;   // the numbers behind it

  [[nodiscard]] bool reached() const {
    return at_most ? measured <= to_reach : measured >= to_reach;
  }
};

inline void print(const Figure& figure) {
  std::printf("%s: %.3f (to reach: %s %g)%s\n  %s\n  %s\n", figure.name.c_str(), figure.measured,
              figure.at_most ? "<=" : ">=", figure.to_reach, figure.reached() ? "" : "  MISSED",
              figure.detail.c_str(), figure.method.c_str());
  std::string line;
  baton::JsonWriter json(line);
  json.begin_object().field("figure", figure.name).field("measured", figure.measured);
  json.field("bound", figure.at_most ? "<=" : ">=").field("to_reach", figure.to_reach);
  json.field("reached", figure.reached()).field("detail", figure.detail);
  json.field("method", figure.method).field("smoke", smoke()).end_object();
  std::printf("figure %s\n", line.c_str());
  std::fflush(stdout);
}

[[noreturn]] inline void die(const std::string& sentence) {
  std::fprintf(stderr, "bench: %s\n", sentence.c_str());
  std::exit(1);
}

template <class T, class E>
T need(baton::Result<T, E> result) {
  if (!result.has_value()) die(result.error());
  return *std::move(result);
}

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace bench
