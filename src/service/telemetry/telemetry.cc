#include "service/telemetry/telemetry.h"

#include "base/check.h"
#include "protocol/exposition/writer.h"

namespace baton::service {

using protocol::exposition::Label;
using protocol::exposition::Writer;

struct Telemetry::Series {
  std::string model;
  int64_t version = 0;
  std::string version_text;
  std::vector<std::unique_ptr<ModelCells>> cells;  // by worker
};

namespace {

// One model version's numbers, summed over the workers.
struct Totals {
  std::string model;
  std::string version;
  uint64_t started = 0;
  std::array<uint64_t, kEndReasonCount> ended{};
  uint64_t items_done = 0;
  uint64_t compute_input_ns = 0;
  uint64_t compute_output_ns = 0;
  struct Merged {
    std::array<uint64_t, LatencyHistogram::kBuckets> buckets{};
    uint64_t sum_ns = 0;
  };
  Merged total, queue, compute;
  ports::EngineStats engine;

  [[nodiscard]] uint64_t in_flight() const {
    uint64_t done = 0;
    for (uint64_t n : ended) done += n;
    // Cells are read one after the other: an end may be seen before its start.
    return started > done ? started - done : 0;
  }
  [[nodiscard]] std::array<Label, 2> labels() const {
    return {{{"model", model}, {"version", version}}};
  }
};

void add_cells(Totals& totals, const ModelCells& cells) {
  for (size_t i = 0; i < totals.ended.size(); ++i) totals.ended[i] += cells.ended[i].value();
  totals.started += cells.started.value();
  totals.items_done += cells.items_done.value();
  totals.compute_input_ns += cells.compute_input_ns.value();
  totals.compute_output_ns += cells.compute_output_ns.value();
  cells.total.merge_into(totals.total.buckets, totals.total.sum_ns);
  cells.queue.merge_into(totals.queue.buckets, totals.queue.sum_ns);
  cells.compute.merge_into(totals.compute.buckets, totals.compute.sum_ns);
}

std::array<double, kLatencyBoundsNs.size()> bounds_in(double unit_ns) {
  std::array<double, kLatencyBoundsNs.size()> bounds{};
  for (size_t i = 0; i < bounds.size(); ++i) {
    bounds[i] = static_cast<double>(kLatencyBoundsNs[i]) / unit_ns;
  }
  return bounds;
}

void write_latency(Writer& writer, const std::vector<Totals>& models, double unit_ns,
                   Totals::Merged Totals::* which) {
  const auto bounds = bounds_in(unit_ns);
  for (const Totals& totals : models) {
    const Totals::Merged& merged = totals.*which;
    writer.histogram(totals.labels(),
                     {bounds, merged.buckets, static_cast<double>(merged.sum_ns) / unit_ns});
  }
}

template <class Get>
void write_each(Writer& writer, const std::vector<Totals>& models, Get get) {
  for (const Totals& totals : models) writer.sample(totals.labels(), get(totals));
}

// Triton's reasons for nv_inference_request_failure.
std::string_view failure_group(EndReason reason) {
  switch (reason) {
    case EndReason::kQueueFull:
    case EndReason::kOverloaded:
    case EndReason::kDeadlineQueued:
      return "REJECTED";
    case EndReason::kClientGone:
      return "CANCELED";
    case EndReason::kEngineFailed:
      return "BACKEND";
    default:
      return "OTHER";
  }
}

void write_own_families(Writer& writer, const std::vector<Totals>& models) {
  writer.family("baton_requests_total", "counter", "Inference requests by how they ended.");
  for (const Totals& totals : models) {
    for (size_t i = 0; i < totals.ended.size(); ++i) {
      if (totals.ended[i] == 0 && i != 0) continue;
      const std::array<Label, 3> labels = {
          {{"model", totals.model},
           {"version", totals.version},
           {"end_reason", end_reason_name(static_cast<EndReason>(i))}}};
      writer.sample(labels, totals.ended[i]);
    }
  }
  writer.family("baton_request_duration_seconds", "histogram",
                "Arrival to answer of successful requests.");
  write_latency(writer, models, 1e9, &Totals::total);
  writer.family("baton_queue_duration_seconds", "histogram",
                "Time in the queue until the batch began.");
  write_latency(writer, models, 1e9, &Totals::queue);
  writer.family("baton_compute_duration_seconds", "histogram", "The model's own run.");
  write_latency(writer, models, 1e9, &Totals::compute);
  writer.family("baton_batch_size", "histogram", "Rows of each run of the model.");
  std::array<double, std::tuple_size_v<decltype(ports::EngineStats::batch_sizes)> - 1> bounds{};
  for (size_t i = 0; i < bounds.size(); ++i) bounds[i] = static_cast<double>(1U << i);
  for (const Totals& totals : models) {
    writer.histogram(totals.labels(), {bounds, totals.engine.batch_sizes,
                                       static_cast<double>(totals.engine.executed_items)});
  }
  writer.family("baton_queued_requests", "gauge", "Requests that wait for a batch.");
  write_each(writer, models, [](const Totals& t) { return t.engine.queued_calls; });
  writer.family("baton_running_requests", "gauge", "Requests in a batch that runs.");
  write_each(writer, models, [](const Totals& t) { return t.engine.running_calls; });
}

void write_triton_families(Writer& writer, const std::vector<Totals>& models) {
  const auto ok = static_cast<size_t>(EndReason::kOk);
  writer.family("nv_inference_request_success", "counter", "Successful inference requests.");
  write_each(writer, models, [=](const Totals& t) { return t.ended[ok]; });
  writer.family("nv_inference_request_failure", "counter", "Failed inference requests by reason.");
  for (const Totals& totals : models) {
    for (const std::string_view group : {"REJECTED", "CANCELED", "BACKEND", "OTHER"}) {
      uint64_t count = 0;
      for (size_t i = 1; i < totals.ended.size(); ++i) {
        if (failure_group(static_cast<EndReason>(i)) == group) count += totals.ended[i];
      }
      const std::array<Label, 3> labels = {
          {{"model", totals.model}, {"version", totals.version}, {"reason", group}}};
      writer.sample(labels, count);
    }
  }
  writer.family("nv_inference_count", "counter", "Rows inferred, batching included.");
  write_each(writer, models, [](const Totals& t) { return t.items_done; });
  writer.family("nv_inference_exec_count", "counter", "Runs of the model.");
  write_each(writer, models, [](const Totals& t) { return t.engine.executions; });
  writer.family("nv_inference_pending_request_count", "gauge", "Requests that wait for a batch.");
  write_each(writer, models, [](const Totals& t) { return t.engine.queued_calls; });
  writer.family("nv_inference_request_duration_us", "counter", "Cumulative request time.");
  write_each(writer, models, [](const Totals& t) { return t.total.sum_ns / 1000; });
  writer.family("nv_inference_queue_duration_us", "counter", "Cumulative time in the queue.");
  write_each(writer, models, [](const Totals& t) { return t.queue.sum_ns / 1000; });
  writer.family("nv_inference_compute_input_duration_us", "counter",
                "Cumulative time of gathering inputs.");
  write_each(writer, models, [](const Totals& t) { return t.compute_input_ns / 1000; });
  writer.family("nv_inference_compute_infer_duration_us", "counter",
                "Cumulative time of the model's own run.");
  write_each(writer, models, [](const Totals& t) { return t.compute.sum_ns / 1000; });
  writer.family("nv_inference_compute_output_duration_us", "counter",
                "Cumulative time of handing out outputs.");
  write_each(writer, models, [](const Totals& t) { return t.compute_output_ns / 1000; });
}

// The names that users' scaling policies read. The gpu_* families have no samples without a GPU.
void write_policy_families(Writer& writer, const std::vector<Totals>& models) {
  writer.family("inference_requests_in_flight", "gauge", "Requests admitted and not yet ended.");
  write_each(writer, models, [](const Totals& t) { return t.in_flight(); });
  writer.family("inference_queue_length", "gauge", "Requests that wait for a batch.");
  write_each(writer, models, [](const Totals& t) { return t.engine.queued_calls; });
  writer.family("model_latency_ms", "histogram", "Arrival to answer of successful requests.");
  write_latency(writer, models, 1e6, &Totals::total);
  writer.family("gpu_utilization", "gauge", "Share of time that the GPU was busy, 0 to 1.");
  writer.family("gpu_memory_used_bytes", "gauge", "GPU memory in use.");
}

ports::EngineStats engine_stats(const ports::Directory& directory, const std::string& model,
                                int64_t version) {
  const auto entry = directory.models.find(model);
  if (entry == directory.models.end()) return {};
  const auto found = entry->second->versions.find(version);
  if (found == entry->second->versions.end() || !found->second->engine) return {};
  return found->second->engine->stats();
}

}  // namespace

Telemetry::Telemetry(size_t workers) {
  for (size_t i = 0; i < workers; ++i) workers_.push_back(std::make_unique<WorkerCells>());
}

Telemetry::~Telemetry() {
  for (auto& series : series_) delete series.load();
}

std::optional<size_t> Telemetry::slot_for(const std::string& model, int64_t version) {
  const size_t count = series_count_.load();
  for (size_t i = 0; i < count; ++i) {
    const Series& series = *series_[i].load();
    if (series.version == version && series.model == model) return i;
  }
  if (count == kMostModels) return std::nullopt;
  auto series = std::make_unique<Series>();
  series->model = model;
  series->version = version;
  series->version_text = std::to_string(version);
  for (size_t i = 0; i < workers_.size(); ++i) {
    series->cells.push_back(std::make_unique<ModelCells>());
  }
  series_[count].store(series.release(), std::memory_order_release);
  series_count_.store(count + 1, std::memory_order_release);
  return count;
}

ModelCells& Telemetry::cells(size_t worker, size_t slot) {
  Series* series = series_[slot].load(std::memory_order_acquire);
  BATON_CHECK(series != nullptr);
  return *series->cells[worker];
}

uint64_t Telemetry::in_flight() const {
  Totals totals;
  const size_t count = series_count_.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    for (const auto& cells : series_[i].load(std::memory_order_acquire)->cells) {
      add_cells(totals, *cells);
    }
  }
  return totals.in_flight();
}

void Telemetry::render_models(std::string& out, const ports::Directory& directory) const {
  std::vector<Totals> models;
  const size_t count = series_count_.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    const Series& series = *series_[i].load(std::memory_order_acquire);
    Totals totals;
    totals.model = series.model;
    totals.version = series.version_text;
    for (const auto& cells : series.cells) add_cells(totals, *cells);
    totals.engine = engine_stats(directory, series.model, series.version);
    models.push_back(std::move(totals));
  }
  Writer writer(out);
  write_own_families(writer, models);
  write_triton_families(writer, models);
  write_policy_families(writer, models);
}

std::string Telemetry::render(const ports::Directory& directory) const {
  std::string out;
  render_models(out, directory);
  Writer writer(out);
  writer.family("baton_refused_total", "counter",
                "Requests refused before their model was known, by reason.");
  for (size_t i = 1; i < kEndReasonCount; ++i) {
    uint64_t count = 0;
    for (const auto& worker : workers_) count += worker->refused[i].value();
    if (count == 0) continue;
    const std::array<Label, 1> labels = {
        {{"end_reason", end_reason_name(static_cast<EndReason>(i))}}};
    writer.sample(labels, count);
  }
  writer.family("baton_http_requests_total", "counter",
                "Requests of any kind that reached a worker.");
  uint64_t requests = 0;
  for (const auto& worker : workers_) requests += worker->requests.value();
  writer.sample({}, requests);
  writer.family("baton_model_ready", "gauge", "1 when the model version answers requests.");
  for (const auto& [name, entry] : directory.models) {
    for (const auto& [version, served] : entry->versions) {
      const std::string version_text = std::to_string(version);
      const std::array<Label, 2> labels = {{{"model", name}, {"version", version_text}}};
      writer.sample(labels, uint64_t{served->state == ModelState::kReady});
    }
  }
  return out;
}

}  // namespace baton::service
