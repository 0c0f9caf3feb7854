// Two alternating shapes of equal cost at 80 % of the rate that one shape saturates at: the mean
// batch and p99 over those with one shape at that rate.

#include <array>

#include "adapters/onnx/testing/onnx_writer.h"
#include "support/load.h"

namespace {

constexpr std::array<int64_t, 5> kSizes = {512, 2048, 2048, 2048, 16};
const std::vector<baton::Shape> kOneShape = {{1, 16, 32}, {1, 16, 32}};
const std::vector<baton::Shape> kTwoShapes = {{1, 16, 32}, {1, 32, 16}};

struct Window {
  double mean_batch = 0;
  double p99 = 0;
};

// Answers a second when more is offered than can be served.
double saturation(const bench::ServerProcess& server) {
  std::vector<double> rates;
  for (int i = 0; i < (bench::smoke() ? 1 : 3); ++i) {
    const auto result = bench::offer(server, "mlp",
                                     {.rate = 20'000,
                                      .seconds = bench::smoke() ? 0.3 : 2,
                                      .shapes = kOneShape,
                                      .outstanding_max = 200});
    rates.push_back(result.achieved_rate());
  }
  return bench::median(rates);
}

Window measure(const bench::ServerProcess& server, const std::vector<baton::Shape>& shapes,
               double rate, uint64_t seed) {
  const auto before = server.report("mlp");
  const auto result = bench::offer(server, "mlp",
                                   {.rate = rate,
                                    .seconds = bench::smoke() ? 0.3 : 3,
                                    .warmup_seconds = 0,
                                    .shapes = shapes,
                                    .seed = seed});
  const auto after = server.report("mlp");
  const auto runs =
      static_cast<double>(std::max<uint64_t>(after.executions - before.executions, 1));
  return {static_cast<double>(after.items - before.items) / runs, bench::p99_ms(result)};
}

}  // namespace

int main() {
  const bench::TemporaryFolder repository;
  bench::write_model(repository.path(), "mlp",
                     baton::adapters::onnx::testing::mlp_model(kSizes, true),
                     "max_batch_size: 32\ndynamic_batching {}\n");
  const bench::ServerProcess server(repository.path());
  const double rate = 0.8 * saturation(server);
  std::vector<double> one_batch, two_batch, one_p99, two_p99, batch_ratios, p99_ratios;
  const uint64_t windows = bench::smoke() ? 1 : 7;
  for (uint64_t i = 0; i < windows; ++i) {
    const Window one = measure(server, kOneShape, rate, i);
    const Window two = measure(server, kTwoShapes, rate, i);
    one_batch.push_back(one.mean_batch);
    two_batch.push_back(two.mean_batch);
    one_p99.push_back(one.p99);
    two_p99.push_back(two.p99);
    batch_ratios.push_back(two.mean_batch / one.mean_batch);
    p99_ratios.push_back(two.p99 / one.p99);
  }
  char text[200];
  std::snprintf(text, sizeof text, "%.0f/s; mean batch %.2f with one shape, %.2f with two", rate,
                bench::median(one_batch), bench::median(two_batch));
  const std::string method =
      "Poisson arrivals at 80 % of the rate that one shape saturates at; windows of 3 s with one "
      "and with two shapes take turns; median of their ratios";
  bench::print({.name = "mixed_shapes_batch",
                .method = method,
                .measured = bench::median(batch_ratios),
                .to_reach = 0.9,
                .at_most = false,
                .detail = text});
  std::snprintf(text, sizeof text, "p99 %.2f ms with one shape, %.2f ms with two",
                bench::median(one_p99), bench::median(two_p99));
  bench::print({.name = "mixed_shapes_p99",
                .method = method,
                .measured = bench::median(p99_ratios),
                .to_reach = 2,
                .detail = text});
}
