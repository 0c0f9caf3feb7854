#pragma once
// A server's p50 over an echo's plus the bare run, in windows that take turns.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "support/figures.h"

namespace bench {

struct Overhead {
  double server_us = 0;
  double echo_us = 0;
  double run_us = 0;
  double ratio = 0;  // the median of the windows' own ratios
  std::vector<double> ratios;
};

inline double p50_us(const std::function<void()>& once, size_t count) {
  std::vector<double> times;
  times.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    once();
    times.push_back(seconds_since(begin) * 1e6);
  }
  return median(std::move(times));
}

// Each window has `count` exchanges with the server, the echo and the library in turn, so that all
// see the same machine.
inline Overhead measure_overhead(const std::function<void()>& server,
                                 const std::function<void()>& echo,
                                 const std::function<void()>& run) {
  const size_t windows = smoke() ? 2 : 41;
  const size_t count = smoke() ? 50 : 2000;
  p50_us(server, count);
  p50_us(echo, count);
  p50_us(run, count);
  std::vector<double> servers, echoes, runs;
  Overhead out;
  for (size_t i = 0; i < windows; ++i) {
    servers.push_back(p50_us(server, count));
    echoes.push_back(p50_us(echo, count));
    runs.push_back(p50_us(run, count));
    out.ratios.push_back(servers.back() / (echoes.back() + runs.back()));
  }
  out.server_us = median(servers);
  out.echo_us = median(echoes);
  out.run_us = median(runs);
  out.ratio = median(out.ratios);
  return out;
}

inline Figure overhead_figure(std::string name, double to_reach, const Overhead& overhead) {
  char text[200];
  std::snprintf(text, sizeof text,
                "p50 %.1f us; echo %.1f us; bare Run %.1f us; ratio of windows %.2f to %.2f "
                "(10th and 90th percentile)",
                overhead.server_us, overhead.echo_us, overhead.run_us,
                quantile(overhead.ratios, 0.1), quantile(overhead.ratios, 0.9));
  return {.name = std::move(name),
          .method =
              "client, server and echo on one CPU; windows of server, echo and bare Run take "
              "turns; median of the windows' ratios server / (echo + Run)",
          .measured = overhead.ratio,
          .to_reach = to_reach,
          .detail = text};
}

}  // namespace bench
