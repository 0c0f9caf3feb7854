#include "app/sim_command.h"

#include <cstdio>
#include <fstream>
#include <optional>

#include "sim/replay.h"
#include "sim/run.h"

namespace baton::app {
namespace {

// A simulation is faster than a disk: its log waits for it and loses nothing.
class LogFile final : public ports::LogSink {
 public:
  explicit LogFile(const std::string& path) : out_(path, std::ios::binary) {}
  void write(std::string_view line) override { out_ << line << '\n'; }
  [[nodiscard]] bool close() {
    out_.close();
    return !out_.fail();
  }

 private:
  std::ofstream out_;
};

int complain(const std::string& sentence) {
  std::fprintf(stderr, "baton: %s\n", sentence.c_str());
  return 2;
}

}  // namespace

int run_sim(const SimOptions& options) {
  sim::ScenarioOptions scenario;
  scenario.scenario = options.scenario;
  scenario.seed = options.seed;
  scenario.duration = Duration::from_seconds(options.seconds);
  if (!options.fault.empty()) {
    const auto fault = sim::parse_planted_fault(options.fault);
    if (!fault) return complain("no fault is called \"" + options.fault + "\"");
    scenario.fault = *fault;
  }
  std::optional<LogFile> log;
  if (!options.decisions.empty()) scenario.decisions = &log.emplace(options.decisions);
  const auto result = sim::run_scenario(scenario);
  if (!result.has_value()) return complain(result.error());
  if (log && !log->close())
    return complain("the decision log cannot be written: " + options.decisions);
  const std::string report =
      options.as_json ? sim::render_json(*result) : sim::render_text(*result);
  std::printf("%s\n", report.c_str());
  return result->passed() ? 0 : 1;
}

int run_replay(const std::string& path, bool as_json) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return complain("the decision log cannot be read: " + path);
  sim::Replay replay;
  for (std::string line; std::getline(in, line);) {
    if (in.eof()) break;  // without its line feed: the writer was cut off, or is at it
    const auto fed = replay.feed(line);
    if (!fed.has_value()) return complain(path + ": " + fed.error());
    if (!*fed) break;
  }
  const sim::ReplayResult result = replay.finish();
  if (result.parts.empty()) return complain("the decision log is empty: " + path);
  const std::string report = as_json ? sim::render_json(result) : sim::render_text(result);
  std::printf("%s\n", report.c_str());
  if (result.difference) return 1;
  return result.complete() ? 0 : 3;
}

}  // namespace baton::app
