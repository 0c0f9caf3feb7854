// The highest rate of Poisson arrivals at which an MLP of 9.5 M parameters answers with p99 within
// 20 ms: batching, over what does not batch, each the better of one and two instances; and batching
// on one instance over what the simulator predicts from the curve that the server measured.

#include <array>
#include <cmath>
#include <memory>

#include "adapters/onnx/testing/onnx_writer.h"
#include "sim/run.h"
#include "support/load.h"

namespace {

using bench::ServerProcess;

constexpr double kObjectiveMs = 20;
constexpr std::array<int64_t, 5> kSizes = {512, 2048, 2048, 2048, 16};
constexpr uint32_t kMaxBatch = 64;

std::string config_text(uint32_t max_batch, uint32_t instances) {
  const std::string count = std::to_string(instances);
  std::string text = "max_batch_size: " + std::to_string(max_batch) +
                     "\ninstance_group [ { count: " + count + " kind: KIND_CPU } ]\n";
  if (max_batch > 0) text += "dynamic_batching {}\n";
  return text;
}

// One configuration and the rates that are known to hold and to fail.
struct Candidate {
  std::string name;
  std::unique_ptr<bench::TemporaryFolder> repository;
  std::unique_ptr<ServerProcess> server;
  double holds = 0;
  double fails = 0;  // 0: none found yet
  double next = 0;

  [[nodiscard]] bool done() const { return fails > 0 && fails / std::max(holds, 1.0) < 1.03; }
};

Candidate make_candidate(std::string name, const std::string& onnx, const std::string& config,
                         double first_rate) {
  Candidate candidate{.name = std::move(name),
                      .repository = std::make_unique<bench::TemporaryFolder>(),
                      .server = nullptr,
                      .next = first_rate};
  bench::write_model(candidate.repository->path(), "mlp", onnx, config);
  candidate.server = std::make_unique<ServerProcess>(candidate.repository->path());
  return candidate;
}

bool keeps_objective(const Candidate& candidate, double rate, uint64_t seed) {
  const auto result = bench::offer(*candidate.server, "mlp",
                                   {.rate = rate,
                                    .seconds = bench::smoke() ? 0.3 : 3,
                                    .shapes = {{1, 512}, {1, 512}},
                                    .seed = seed});
  std::printf("  %-22s %6.0f/s: p99 %7.2f ms, failed %llu\n", candidate.name.c_str(), rate,
              bench::p99_ms(result), static_cast<unsigned long long>(result.failed()));
  std::fflush(stdout);
  return result.failed() == 0 && bench::p99_ms(result) <= kObjectiveMs;
}

// One step of a bisection. A rate fails when it fails twice: what else the machine does can only
// make it fail.
void step(Candidate& candidate, uint64_t seed) {
  const double rate = candidate.next;
  if (keeps_objective(candidate, rate, seed) || keeps_objective(candidate, rate, seed + 100)) {
    candidate.holds = std::max(candidate.holds, rate);
    if (candidate.fails > 0 && candidate.fails <= rate) candidate.fails = 0;
  } else {
    candidate.fails = rate;
  }
  if (candidate.fails <= 0) {
    candidate.next = candidate.holds * 1.15;
  } else if (candidate.holds <= 0) {
    candidate.next = candidate.fails / 1.3;
  } else {
    candidate.next = std::sqrt(candidate.holds * candidate.fails);
  }
}

baton::ModelConfig batching_config() {
  baton::ModelConfig config;
  config.name = "mlp";
  config.max_batch_size = kMaxBatch;
  config.batching.enabled = true;
  config.inputs = {{.name = "x", .dims = {512}}};
  return config;
}

std::string curve_text(const baton::LatencyCurve& curve) {
  std::string text;
  for (const baton::CurvePoint& point : curve.points()) {
    char piece[40];
    std::snprintf(piece, sizeof piece, " %u:%.2f", point.batch_size,
                  point.duration.seconds() * 1e3);
    text += piece;
  }
  return text;
}

void report(const std::vector<Candidate>& candidates, double predicted,
            const baton::LatencyCurve& curve) {
  const double alone = candidates[0].holds;
  const double batching = std::max(alone, candidates[3].holds);
  const double unbatched = std::max(candidates[1].holds, candidates[2].holds);
  char text[200];
  std::snprintf(
      text, sizeof text,
      "batching %.0f/s (one instance), %.0f/s (two); unbatched %.0f/s (one), %.0f/s (two)", alone,
      candidates[3].holds, candidates[1].holds, candidates[2].holds);
  const std::string method =
      "open-loop Poisson arrivals over HTTP from this machine, 3 s a rate, bisected to 3 % in "
      "turns "
      "of the configurations; a rate fails when it fails twice";
  bench::print({.name = "mlp_batching_gain",
                .method = method,
                .measured = batching / std::max(unbatched, 1.0),
                .to_reach = 5,
                .at_most = false,
                .detail = text});
  std::snprintf(text, sizeof text,
                "one instance reached %.0f/s; predicted %.0f/s from the curve in ms:", alone,
                predicted);
  bench::print({.name = "mlp_prediction",
                .method = method + "; predicted by the simulator from the server's own curve",
                .measured = alone / std::max(predicted, 1.0),
                .to_reach = 0.85,
                .at_most = false,
                .detail = text + curve_text(curve)});
}

}  // namespace

int main() {
  const std::string onnx = baton::adapters::onnx::testing::mlp_model(kSizes);
  std::vector<Candidate> candidates;
  candidates.push_back(make_candidate("batching", onnx, config_text(kMaxBatch, 1), 100));
  const auto measured = candidates[0].server->report("mlp").curve;
  const auto objective = baton::Duration::ms(20);
  const double predicted = baton::sim::max_rate_within(measured, batching_config(), objective, 1);
  std::printf("curve, ms:%s; predicted %.0f/s\n", curve_text(measured).c_str(), predicted);
  candidates[0].next = 0.85 * predicted;
  const double alone = 1 / measured.predict(1).seconds();
  candidates.push_back(make_candidate("one unbatched", onnx, config_text(0, 1), alone * 0.8));
  candidates.push_back(make_candidate("two unbatched", onnx, config_text(0, 2), alone));
  candidates.push_back(
      make_candidate("batching, two", onnx, config_text(kMaxBatch, 2), 0.85 * predicted));
  const size_t rounds = bench::smoke() ? 1 : 8;
  for (size_t round = 0; round < rounds; ++round) {
    for (Candidate& candidate : candidates) {
      if (!candidate.done()) step(candidate, round);
    }
  }
  const auto served = candidates[0].server->report("mlp");
  std::printf("curve after serving, ms:%s; mean batch %.1f\n", curve_text(served.curve).c_str(),
              static_cast<double>(served.items) / static_cast<double>(served.executions));
  report(candidates, predicted, measured);
}
