#pragma once
// One open-loop run: what is sent when, and what came of it.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "adapters/load/arrivals.h"
#include "base/histogram.h"
#include "base/result.h"
#include "domain/model.h"
#include "domain/request.h"
#include "ports/clock.h"

namespace baton::adapters::load {

struct LoadTarget {
  std::string host;  // numeric address
  uint16_t port = 0;
  std::string model;
};

struct LoadPlan {
  Schedule sends;
  // Requests before this offset warm the server up and are not counted.
  Duration counted_from;
  std::vector<std::shared_ptr<const InferRequest>> requests;  // sent in turn; at least one
  size_t connections = 64;
  size_t outstanding_max = 4096;         // unanswered requests, here and at the server
  Duration objective = Duration::max();  // of goodput
  Duration patience = Duration::s(30);   // for answers after the last send
};

struct LoadResult {
  uint64_t planned = 0;   // counted ones; the sum of the next two and the failures
  uint64_t answered = 0;  // with success
  uint64_t within_objective = 0;
  std::map<std::string, uint64_t> failures;  // by status; "overflow": never sent
  Histogram latency;                         // of answered requests, from the intended time
  Histogram lateness;                        // of the generator: sent minus intended
  Duration span;  // from the first counted send to the last answer, the schedule at least
  [[nodiscard]] uint64_t failed() const;
  [[nodiscard]] double achieved_rate() const;  // answers a second
  [[nodiscard]] double goodput() const;        // those within the objective
};

// Counts the ends of one run's requests. Times are offsets from the start of the run.
class Tally {
 public:
  explicit Tally(const LoadPlan& plan);
  void sent(Duration intended, Duration now);
  void answered(Duration intended, Duration now);
  void failed(Duration intended, const std::string& status);
  [[nodiscard]] LoadResult take();

 private:
  [[nodiscard]] bool counts(Duration intended) const { return intended >= counted_from_; }
  Duration counted_from_;
  Duration objective_;
  Duration last_;
  LoadResult result_;
};

// Errors: a sentence about what cannot be started; what fails later is in the result.
[[nodiscard]] Result<LoadResult, std::string> run_http_load(const LoadTarget& target,
                                                            const LoadPlan& plan,
                                                            const ports::Clock& clock);
// Over gRPC, with raw contents. In a build without gRPC: an error.
[[nodiscard]] Result<LoadResult, std::string> run_grpc_load(const LoadTarget& target,
                                                            const LoadPlan& plan,
                                                            const ports::Clock& clock);
// What the server's ModelMetadata says; dims include the batch dimension.
[[nodiscard]] Result<std::vector<TensorSpec>, std::string> grpc_model_inputs(
    const LoadTarget& target);

}  // namespace baton::adapters::load
