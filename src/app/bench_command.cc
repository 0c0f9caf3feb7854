#include "app/bench_command.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <utility>

#include "adapters/load/load.h"
#include "adapters/transport/steady_clock.h"
#include "app/bench_report.h"
#include "app/failure.h"
#include "app/http_get.h"
#include "protocol/command_line/arguments.h"
#include "protocol/oip/client.h"
#include "service/batching/synthetic_request.h"

namespace baton::app {
namespace {

namespace load = adapters::load;
namespace command_line = protocol::command_line;

constexpr size_t kDistinctRequests = 4;
constexpr double kDefaultRate = 100;

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
  BATON_TRY(command_line::close_shapes(inputs, options.rows, options.shapes));
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

Result<load::LoadResult, Failure> measure(const BenchOptions& options) {
  const adapters::transport::SteadyClock clock;
  const bool grpc = !options.grpc.empty();
  BATON_ASSIGN(const auto address,
               or_status(command_line::parse_address(grpc ? options.grpc : options.url), 2));
  const load::LoadTarget target{address.host, address.port, options.model};
  BATON_ASSIGN(auto inputs,
               or_status(grpc ? load::grpc_model_inputs(target) : http_model_inputs(target), 1));
  BATON_ASSIGN(const load::LoadPlan plan, or_status(make_plan(options, std::move(inputs)), 2));
  return or_status(
      grpc ? load::run_grpc_load(target, plan, clock) : load::run_http_load(target, plan, clock),
      1);
}

}  // namespace

int run_bench(const BenchOptions& options) {
  const auto result = measure(options);
  if (!result.has_value()) {
    std::fprintf(stderr, "baton: %s\n", result.error().message.c_str());
    return result.error().status;
  }
  const std::string report =
      options.as_json ? bench_json(options, *result) : bench_text(options, *result);
  std::printf("%s\n", report.c_str());
  return result->failed() == 0 ? 0 : 1;
}

}  // namespace baton::app
