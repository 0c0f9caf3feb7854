#include "app/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/json_writer.h"

namespace baton::app {
namespace {

struct Quantile {
  const char* name;
  double q;
};
constexpr std::array<Quantile, 4> kQuantiles = {
    {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}}};
constexpr int kBarColumns = 50;

double ms(Duration duration) {
  return duration.seconds() * 1e3;
}

// Buckets that double, from the one below the fastest answer to the one of the slowest.
struct Bucket {
  Duration from;
  Duration to;
  uint64_t count = 0;
};

std::vector<Bucket> buckets_of(const Histogram& histogram) {
  std::vector<Bucket> buckets;
  uint64_t below = 0;
  for (Duration from = Duration(), to = Duration::us(16); below < histogram.count();
       from = to, to = to * 2) {
    const uint64_t within = histogram.count_within(to);
    if (within > 0) buckets.push_back({from, to, within - below});
    below = within;
  }
  return buckets;
}

std::string histogram_text(const Histogram& histogram) {
  const auto buckets = buckets_of(histogram);
  std::string out;
  uint64_t most = 1;
  for (const Bucket& bucket : buckets) most = std::max(most, bucket.count);
  for (const Bucket& bucket : buckets) {
    const auto columns = static_cast<size_t>(bucket.count * kBarColumns / most);
    out += fmt::format("  {:>9.3f} - {:>9.3f} ms {:>9} {}\n", ms(bucket.from), ms(bucket.to),
                       bucket.count, std::string(columns, '#'));
  }
  return out;
}

void write_latency(JsonWriter& json, const Histogram& histogram) {
  json.begin_object().field("mean", ms(histogram.mean()));
  for (const auto& [name, q] : kQuantiles) json.field(name, ms(histogram.quantile(q)));
  json.field("max", ms(histogram.max())).end_object();
}

}  // namespace

std::string bench_text(const BenchOptions& options, const adapters::load::LoadResult& result) {
  const bool grpc = !options.grpc.empty();
  std::string out =
      fmt::format("{} at {} over {}: {} arrivals, {} requests in {:.1f} s\n", options.model,
                  grpc ? options.grpc : options.url, grpc ? "gRPC" : "HTTP", options.arrivals,
                  result.planned, options.seconds);
  out += fmt::format("answered {} ({:.1f} a second), failed {}\n", result.answered,
                     result.achieved_rate(), result.failed());
  for (const auto& [status, count] : result.failures) {
    out += fmt::format("  {}: {}\n", status, count);
  }
  out += "latency from the intended send, ms:";
  for (const auto& [name, q] : kQuantiles) {
    out += fmt::format(" {} {:.3f}", name, ms(result.latency.quantile(q)));
  }
  out += fmt::format(" max {:.3f}\n", ms(result.latency.max()));
  if (options.objective_seconds > 0) {
    out += fmt::format("goodput within {:g} ms: {:.1f} a second, {:.2f} % of what was asked\n",
                       options.objective_seconds * 1e3, result.goodput(),
                       100.0 * static_cast<double>(result.within_objective) /
                           static_cast<double>(std::max<uint64_t>(result.planned, 1)));
  }
  out += fmt::format("sent late by, ms: p50 {:.3f} p99 {:.3f} (counted in the latency)\n",
                     ms(result.lateness.quantile(0.5)), ms(result.lateness.quantile(0.99)));
  return out + histogram_text(result.latency);
}

std::string bench_json(const BenchOptions& options, const adapters::load::LoadResult& result) {
  const bool grpc = !options.grpc.empty();
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("model", options.model).field("protocol", grpc ? "grpc" : "http");
  json.field("arrivals", options.arrivals).field("seed", options.seed);
  json.field("seconds", options.seconds).field("planned", result.planned);
  json.field("answered", result.answered).field("failed", result.failed());
  json.field("achieved_rate", result.achieved_rate());
  json.key("failures").begin_object();
  for (const auto& [status, count] : result.failures) json.field(status, count);
  json.end_object().key("latency_ms");
  write_latency(json, result.latency);
  if (options.objective_seconds > 0) {
    json.field("objective_ms", options.objective_seconds * 1e3);
    json.field("within_objective", result.within_objective).field("goodput", result.goodput());
  }
  json.key("sent_late_ms");
  write_latency(json, result.lateness);
  json.key("histogram").begin_array();
  for (const Bucket& bucket : buckets_of(result.latency)) {
    json.begin_object().field("from_ms", ms(bucket.from)).field("to_ms", ms(bucket.to));
    json.field("count", bucket.count).end_object();
  }
  json.end_array().end_object();
  return out;
}

}  // namespace baton::app
