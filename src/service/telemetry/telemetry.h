#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "domain/end_reason.h"
#include "domain/request.h"
#include "domain/statistics.h"
#include "ports/clock.h"
#include "ports/engine.h"
#include "ports/model_directory.h"
#include "protocol/exposition/writer.h"
#include "service/telemetry/process_counts.h"

namespace baton::service {

// What one worker counts of one model version. Written by that worker only.
struct ModelCells {
  Counter started;
  std::array<Counter, kEndReasonCount> ended;  // by EndReason
  Counter items_done;                          // rows of successful requests
  LatencyHistogram total;                      // arrival to answer, successes
  LatencyHistogram queue;                      // queued to batch start
  LatencyHistogram compute;                    // the model's own run
  Counter compute_input_ns;
  Counter compute_output_ns;
  Counter failed_ns;       // arrival to end of all others
  HighWater last_arrival;  // of requests that ended, in nanoseconds of the process's clock
};

// What one worker counts whatever the model.
struct WorkerCells {
  std::array<Counter, kEndReasonCount> refused;  // before a model was known, by EndReason
  Counter requests;
};

// The series of all models and workers. Workers are fixed at construction; models are added while
// serving, up to kMostModels.
class Telemetry {
 public:
  static constexpr size_t kMostModels = 4096;

  explicit Telemetry(size_t workers);
  ~Telemetry();

  // The controller thread. The slot of a model version; an existing one is given again. Nothing
  // when kMostModels are in use.
  std::optional<size_t> slot_for(const std::string& model, int64_t version);
  // The worker's own cells; the worker's thread only.
  ModelCells& cells(size_t worker, size_t slot);
  WorkerCells& cells(size_t worker) { return *workers_[worker]; }

  // The whole exposition. Any thread.
  [[nodiscard]] std::string render(const ports::Directory& directory, const ProcessCounts& process,
                                   protocol::exposition::Format format) const;
  // Of a version that has a slot. Any thread.
  [[nodiscard]] ModelStatistics statistics(const ports::ModelVersion& version,
                                           const ports::Clock& clock) const;
  // Requests admitted and not yet ended, over all workers and models. Any thread.
  [[nodiscard]] uint64_t in_flight() const;

 private:
  struct Series;
  void render_models(protocol::exposition::Writer& writer, const ports::Directory& directory) const;
  std::vector<std::unique_ptr<WorkerCells>> workers_;
  std::array<std::atomic<Series*>, kMostModels> series_{};
  std::atomic<size_t> series_count_{0};
};

}  // namespace baton::service
