#pragma once
// Open-loop load as `baton bench` makes it, from within a benchmark.

#include <string>
#include <vector>

#include "adapters/load/load.h"
#include "adapters/transport/steady_clock.h"
#include "service/batching/synthetic_request.h"
#include "support/figures.h"
#include "support/server_process.h"

namespace bench {

namespace load = baton::adapters::load;

// Random requests for FP32 inputs "x" of these whole shapes, sent in turn.
inline std::vector<std::shared_ptr<const baton::InferRequest>> requests_of(
    const std::vector<baton::Shape>& shapes) {
  std::vector<std::shared_ptr<const baton::InferRequest>> requests;
  baton::Random random(1);
  for (const baton::Shape& shape : shapes) {
    baton::ModelConfig model;  // max_batch_size 0: dims are whole shapes
    model.inputs = {{.name = "x", .dims = shape}};
    requests.push_back(baton::service::synthetic_request(model, 1, random));
  }
  return requests;
}

struct Offered {
  double rate = 100;  // Poisson
  double seconds = 3;
  double warmup_seconds = 0.5;
  std::vector<baton::Shape> shapes;
  size_t outstanding_max = 4096;
  uint64_t seed = 1;
};

inline load::LoadResult offer(const ServerProcess& server, const std::string& model,
                              const Offered& offered) {
  const baton::adapters::transport::SteadyClock clock;
  load::LoadPlan plan;
  baton::Random random(offered.seed);
  const double length = offered.warmup_seconds + offered.seconds;
  plan.sends = load::poisson_arrivals(offered.rate, baton::Duration::from_seconds(length), random);
  plan.counted_from = baton::Duration::from_seconds(offered.warmup_seconds);
  plan.requests = requests_of(offered.shapes);
  plan.connections = 256;
  plan.outstanding_max = offered.outstanding_max;
  plan.patience = baton::Duration::s(10);
  return need(load::run_http_load({"127.0.0.1", server.http_port(), model}, plan, clock));
}

inline double p99_ms(const load::LoadResult& result) {
  return result.latency.quantile(0.99).seconds() * 1e3;
}

}  // namespace bench
