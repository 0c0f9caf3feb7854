#include "app/bench_command.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <utility>

#include "adapters/http/steady_clock.h"
#include "adapters/load/load.h"
#include "app/bench_report.h"
#include "app/http_get.h"
#include "protocol/oip/client.h"
#include "service/batching/synthetic_request.h"

namespace baton::app {
namespace {

namespace load = adapters::load;

constexpr size_t kDistinctRequests = 4;
constexpr double kDefaultRate = 100;

Result<load::LoadTarget, std::string> parse_target(const std::string& url,
                                                   const std::string& model) {
  std::string_view text = url;
  if (text.starts_with("http://")) text.remove_prefix(7);
  const size_t colon = text.rfind(':');
  uint16_t port = 0;
  const std::string_view digits =
      colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0) {
    return fail("\"" + url + "\" is no address such as 127.0.0.1:8000");
  }
  std::string host(text.substr(0, colon));
  if (host == "localhost") host = "127.0.0.1";
  return load::LoadTarget{std::move(host), port, model};
}

// "name=1,3,224" as the dims of an input.
Result<std::pair<std::string, Shape>, std::string> parse_shape(const std::string& text) {
  const size_t equals = text.rfind('=');
  const auto bad = [&] { return fail("\"" + text + "\" is no shape such as input=1,3,224,224"); };
  if (equals == std::string::npos || equals == 0) return bad();
  Shape dims;
  const char* at = text.data() + equals + 1;
  const char* const last = text.data() + text.size();
  while (at < last) {
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(at, last, dim);
    if (error != std::errc() || dim < 0 || (end != last && *end != ',')) return bad();
    dims.push_back(dim);
    at = end == last ? last : end + 1;
  }
  return std::pair(text.substr(0, equals), dims);
}

// Replaces what the metadata leave open: the first dimension by rows, others by 1 or as asked.
Result<void, std::string> fix_dims(std::vector<TensorSpec>& inputs, const BenchOptions& options) {
  for (TensorSpec& input : inputs) {
    if (!input.dims.empty() && input.dims.front() < 0) input.dims.front() = options.rows;
  }
  for (const std::string& text : options.shapes) {
    BATON_ASSIGN(auto shape, parse_shape(text));
    const auto input = std::ranges::find(inputs, shape.first, &TensorSpec::name);
    if (input == inputs.end()) return fail("the model has no input \"" + shape.first + "\"");
    input->dims = std::move(shape.second);
  }
  for (TensorSpec& input : inputs) {
    std::ranges::replace_if(input.dims, [](int64_t dim) { return dim < 0; }, 1);
    if (!element_count(input.dims)) return fail("input \"" + input.name + "\" would be too large");
  }
  return {};
}

Result<load::Schedule, std::string> make_schedule(const BenchOptions& options) {
  const Duration length = Duration::from_seconds(options.warmup_seconds + options.seconds);
  const double rate = options.rate > 0 ? options.rate : kDefaultRate;
  Random random(options.seed, 1);
  if (options.arrivals == "poisson") return load::poisson_arrivals(rate, length, random);
  if (options.arrivals == "constant") return load::constant_arrivals(rate, length);
  std::ifstream file(options.arrivals, std::ios::binary);
  if (!file) {
    return fail("--arrivals is constant, poisson or a readable CSV file, not \"" +
                options.arrivals + "\"");
  }
  const std::string csv((std::istreambuf_iterator<char>(file)), {});
  return load::trace_arrivals(csv, options.rate, length);
}

Result<std::vector<TensorSpec>, std::string> http_model_inputs(const load::LoadTarget& target) {
  BATON_ASSIGN(const std::string text,
               http_get(target.host, target.port, protocol::oip::model_target(target.model),
                        Duration::s(10)));
  protocol::json::JsonParser parser;
  BATON_ASSIGN(auto metadata, protocol::oip::parse_model_metadata(text, parser));
  return std::move(metadata.inputs);
}

Result<load::LoadPlan, std::string> make_plan(const BenchOptions& options,
                                              std::vector<TensorSpec> inputs) {
  load::LoadPlan plan;
  BATON_TRY(fix_dims(inputs, options));
  BATON_ASSIGN(plan.sends, make_schedule(options));
  ModelConfig shapes;  // max_batch_size 0: the dims are whole shapes
  shapes.name = options.model;
  shapes.inputs = std::move(inputs);
  Random random(options.seed, 2);
  for (size_t i = 0; i < kDistinctRequests; ++i) {
    plan.requests.push_back(service::synthetic_request(shapes, 1, random));
  }
  plan.counted_from = Duration::from_seconds(options.warmup_seconds);
  plan.connections = options.connections;
  plan.outstanding_max = options.outstanding;
  if (options.objective_seconds > 0) {
    plan.objective = Duration::from_seconds(options.objective_seconds);
  }
  return plan;
}

Result<load::LoadResult, std::string> measure(const BenchOptions& options) {
  const adapters::http::SteadyClock clock;
  const bool grpc = !options.grpc.empty();
  BATON_ASSIGN(const load::LoadTarget target,
               parse_target(grpc ? options.grpc : options.url, options.model));
  BATON_ASSIGN(auto inputs, grpc ? load::grpc_model_inputs(target) : http_model_inputs(target));
  BATON_ASSIGN(const load::LoadPlan plan, make_plan(options, std::move(inputs)));
  return grpc ? load::run_grpc_load(target, plan, clock) : load::run_http_load(target, plan, clock);
}

}  // namespace

int run_bench(const BenchOptions& options) {
  const auto result = measure(options);
  if (!result.has_value()) {
    std::fprintf(stderr, "baton: %s\n", result.error().c_str());
    return 2;
  }
  const std::string report =
      options.as_json ? bench_json(options, *result) : bench_text(options, *result);
  std::printf("%s\n", report.c_str());
  return result->failed() == 0 ? 0 : 1;
}

}  // namespace baton::app
