// CPU seconds of one simulated hour at 100 requests a second with every invariant checked. At most
// 2 s in a release build.

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "sim/run.h"

namespace {

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

}  // namespace

int main(int argc, char** argv) {
  const double budget = argc > 1 ? std::atof(argv[1]) : 2.0;
  bool within = true;
  for (const char* name : {"steady", "bursty"}) {
    const double begin = cpu_seconds();
    const auto result = baton::sim::run_scenario(
        {.scenario = name, .seed = 1, .duration = baton::Duration::s(3600)});
    const double spent = cpu_seconds() - begin;
    if (!result || !result->passed()) {
      std::fputs(result ? render_text(*result).c_str() : result.error().c_str(), stderr);
      return EXIT_FAILURE;
    }
    std::printf("%s: %.2f s of CPU for an hour, %llu requests, %llu events, %.0f ns an event\n",
                name, spent, static_cast<unsigned long long>(result->submitted),
                static_cast<unsigned long long>(result->events),
                spent * 1e9 / static_cast<double>(result->events));
    within &= spent <= budget;
  }
  if (!within) std::printf("over the budget of %.1f s\n", budget);
  return within ? EXIT_SUCCESS : EXIT_FAILURE;
}
