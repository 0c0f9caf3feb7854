// CPU seconds of one simulated hour at 100 requests a second with every invariant checked. At most
// 2 s in a release build.

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "sim/run.h"
#include "support/figures.h"

namespace {

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

}  // namespace

int main() {
  // A smoke test of five minutes.
  const auto hour = baton::Duration::s(bench::smoke() ? 300 : 3600);
  double most = 0;
  std::string detail;
  for (const char* name : {"steady", "bursty"}) {
    const double begin = cpu_seconds();
    const auto result = baton::sim::run_scenario({.scenario = name, .seed = 1, .duration = hour});
    const double spent = cpu_seconds() - begin;
    if (!result || !result->passed()) {
      std::fputs(result ? render_text(*result).c_str() : result.error().c_str(), stderr);
      return EXIT_FAILURE;
    }
    std::printf("%s: %.2f s of CPU for an hour, %llu requests, %llu events, %.0f ns an event\n",
                name, spent, static_cast<unsigned long long>(result->submitted),
                static_cast<unsigned long long>(result->events),
                spent * 1e9 / static_cast<double>(result->events));
    most = std::max(most, spent);
    detail += std::string(detail.empty() ? "" : ", ") + name + " " + std::to_string(spent) + " s";
  }
  bench::print({.name = "sim_hour_cpu_seconds",
                .method =
                    "CPU time of an hour of 100 requests a second with all invariants checked; "
                    "the slower of the two scenarios",
                .measured = most,
                .to_reach = 2,
                .detail = detail});
}
