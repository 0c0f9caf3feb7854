#include "service/telemetry/telemetry.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "service/telemetry/metric_table.h"

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

void family(Writer& writer, std::string_view name) {
  const MetricInfo& info = metric_info(name);
  writer.family(info.name, info.type, info.help);
}

// One model version's numbers, summed over the workers.
struct Totals {
  std::string model;
  std::string version;
  uint64_t started = 0;
  std::array<uint64_t, kEndReasonCount> ended{};
  uint64_t items_done = 0;
  uint64_t compute_input_ns = 0;
  uint64_t compute_output_ns = 0;
  uint64_t failed_ns = 0;
  int64_t last_arrival = 0;
  struct Merged {
    std::array<uint64_t, LatencyHistogram::kBuckets> buckets{};
    uint64_t sum_ns = 0;
    [[nodiscard]] StageTotal total() const {
      return {std::accumulate(buckets.begin(), buckets.end(), uint64_t{0}), sum_ns};
    }
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
  totals.failed_ns += cells.failed_ns.value();
  totals.last_arrival = std::max(totals.last_arrival, cells.last_arrival.value());
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
  family(writer, "baton_requests_total");
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
  family(writer, "baton_request_duration_seconds");
  write_latency(writer, models, 1e9, &Totals::total);
  family(writer, "baton_queue_duration_seconds");
  write_latency(writer, models, 1e9, &Totals::queue);
  family(writer, "baton_compute_duration_seconds");
  write_latency(writer, models, 1e9, &Totals::compute);
  family(writer, "baton_batch_size");
  std::array<double, std::tuple_size_v<decltype(ports::EngineStats::batch_sizes)> - 1> bounds{};
  for (size_t i = 0; i < bounds.size(); ++i) bounds[i] = static_cast<double>(1U << i);
  for (const Totals& totals : models) {
    writer.histogram(totals.labels(), {bounds, totals.engine.batch_sizes,
                                       static_cast<double>(totals.engine.executed_items)});
  }
  family(writer, "baton_queued_requests");
  write_each(writer, models, [](const Totals& t) { return t.engine.queued_calls; });
  family(writer, "baton_running_requests");
  write_each(writer, models, [](const Totals& t) { return t.engine.running_calls; });
}

// Of models that keep sequences alone.
void write_sequence_families(Writer& writer, const std::vector<Totals>& models) {
  const auto each = [&](std::string_view name, uint64_t ports::SequenceStats::* which) {
    family(writer, name);
    for (const Totals& totals : models) {
      if (totals.engine.sequences) writer.sample(totals.labels(), *totals.engine.sequences.*which);
    }
  };
  each("baton_sequences_live", &ports::SequenceStats::live);
  each("baton_sequences_begun_total", &ports::SequenceStats::begun);
  each("baton_sequences_idle_ended_total", &ports::SequenceStats::idle_ended);
  each("baton_sequence_steps_lost_total", &ports::SequenceStats::lost_steps);
  each("baton_sequence_state_bytes", &ports::SequenceStats::state_bytes);
}

void write_triton_families(Writer& writer, const std::vector<Totals>& models) {
  const auto ok = static_cast<size_t>(EndReason::kOk);
  family(writer, "nv_inference_request_success");
  write_each(writer, models, [=](const Totals& t) { return t.ended[ok]; });
  family(writer, "nv_inference_request_failure");
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
  family(writer, "nv_inference_count");
  write_each(writer, models, [](const Totals& t) { return t.items_done; });
  family(writer, "nv_inference_exec_count");
  write_each(writer, models, [](const Totals& t) { return t.engine.executions; });
  family(writer, "nv_inference_pending_request_count");
  write_each(writer, models, [](const Totals& t) { return t.engine.queued_calls; });
  family(writer, "nv_inference_request_duration_us");
  write_each(writer, models, [](const Totals& t) { return t.total.sum_ns / 1000; });
  family(writer, "nv_inference_queue_duration_us");
  write_each(writer, models, [](const Totals& t) { return t.queue.sum_ns / 1000; });
  family(writer, "nv_inference_compute_input_duration_us");
  write_each(writer, models, [](const Totals& t) { return t.compute_input_ns / 1000; });
  family(writer, "nv_inference_compute_infer_duration_us");
  write_each(writer, models, [](const Totals& t) { return t.compute.sum_ns / 1000; });
  family(writer, "nv_inference_compute_output_duration_us");
  write_each(writer, models, [](const Totals& t) { return t.compute_output_ns / 1000; });
}

// The names that users' scaling policies read. The gpu_* families have no samples without a GPU.
void write_policy_families(Writer& writer, const std::vector<Totals>& models) {
  family(writer, "inference_requests_in_flight");
  write_each(writer, models, [](const Totals& t) { return t.in_flight(); });
  family(writer, "inference_queue_length");
  write_each(writer, models, [](const Totals& t) { return t.engine.queued_calls; });
  family(writer, "model_latency_ms");
  write_latency(writer, models, 1e6, &Totals::total);
  family(writer, "gpu_utilization");
  family(writer, "gpu_memory_used_bytes");
}

void write_listeners(Writer& writer, const std::vector<ProcessCounts::Listener>& listeners) {
  const auto each = [&](std::string_view name, uint64_t ProcessCounts::Listener::* which) {
    family(writer, name);
    for (const ProcessCounts::Listener& listener : listeners) {
      const std::array<Label, 1> labels = {{{"listener", listener.name}}};
      writer.sample(labels, listener.*which);
    }
  };
  each("baton_listener_connections", &ProcessCounts::Listener::open);
  each("baton_listener_connections_accepted_total", &ProcessCounts::Listener::accepted);
  each("baton_listener_connections_refused_total", &ProcessCounts::Listener::refused);
  each("baton_listener_timeouts_total", &ProcessCounts::Listener::timeouts);
  each("baton_listener_bad_requests_total", &ProcessCounts::Listener::bad_requests);
  each("baton_listener_receiving_bytes", &ProcessCounts::Listener::receiving);
  each("baton_listener_write_stalls_total", &ProcessCounts::Listener::write_stalls);
}

void write_process(Writer& writer, const ProcessCounts& process) {
  write_listeners(writer, process.listeners);
  family(writer, "baton_unwritten_answer_bytes");
  writer.sample({}, process.unwritten_bytes);
  family(writer, "baton_log_lines_dropped_total");
  for (const ProcessCounts::Log& log : process.logs) {
    const std::array<Label, 1> labels = {{{"log", log.name}}};
    writer.sample(labels, log.dropped);
  }
  family(writer, "baton_decision_records_missed_total");
  writer.sample({}, process.decisions_missed);
}

ports::EngineStats engine_stats(const ports::Directory& directory, const std::string& model,
                                int64_t version) {
  const auto entry = directory.models.find(model);
  if (entry == directory.models.end()) return {};
  const auto found = entry->second->versions.find(version);
  if (found == entry->second->versions.end()) return {};
  ports::EngineStats stats = found->second->earlier;
  if (!found->second->engine) return stats;
  const ports::EngineStats now = found->second->engine->stats();
  stats.queued_calls = now.queued_calls;
  stats.running_calls = now.running_calls;
  stats.executions += now.executions;
  stats.executed_items += now.executed_items;
  for (size_t i = 0; i < stats.batch_sizes.size(); ++i) stats.batch_sizes[i] += now.batch_sizes[i];
  if (now.sequences) {
    const ports::SequenceStats before = stats.sequences.value_or(ports::SequenceStats());
    stats.sequences = now.sequences;
    stats.sequences->begun += before.begun;
    stats.sequences->idle_ended += before.idle_ended;
    stats.sequences->lost_steps += before.lost_steps;
  }
  return stats;
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

ModelStatistics Telemetry::statistics(const ports::ModelVersion& version,
                                      const ports::Clock& clock) const {
  const Series* series = series_[version.metrics_slot].load(std::memory_order_acquire);
  BATON_CHECK(series != nullptr);
  Totals totals;
  for (const auto& cells : series->cells) add_cells(totals, *cells);
  ModelStatistics out;
  out.model = version.model;
  out.version = version.version;
  out.items = totals.items_done;
  out.success = totals.total.total();
  for (size_t i = 1; i < totals.ended.size(); ++i) out.fail.count += totals.ended[i];
  out.fail.ns = totals.failed_ns;
  out.queue = totals.queue.total();
  out.compute_infer = totals.compute.total();
  out.compute_input = {out.compute_infer.count, totals.compute_input_ns};
  out.compute_output = {out.compute_infer.count, totals.compute_output_ns};
  if (totals.last_arrival > 0) {
    const Duration ago = clock.now() - Instant::from_ns(totals.last_arrival);
    out.last_inference_ms = (clock.wall().unix_ns - ago.ns()) / 1'000'000;
  }
  if (version.engine) {
    out.executions = version.engine->stats().executions;
    out.batches = version.engine->batch_totals();
  }
  return out;
}

void Telemetry::render_models(Writer& writer, const ports::Directory& directory) const {
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
  write_own_families(writer, models);
  write_sequence_families(writer, models);
  write_triton_families(writer, models);
  write_policy_families(writer, models);
}

std::string Telemetry::render(const ports::Directory& directory, const ProcessCounts& process,
                              protocol::exposition::Format format) const {
  std::string out;
  Writer writer(out, format);
  render_models(writer, directory);
  family(writer, "baton_refused_total");
  for (size_t i = 1; i < kEndReasonCount; ++i) {
    uint64_t count = 0;
    for (const auto& worker : workers_) count += worker->refused[i].value();
    if (count == 0) continue;
    const std::array<Label, 1> labels = {
        {{"end_reason", end_reason_name(static_cast<EndReason>(i))}}};
    writer.sample(labels, count);
  }
  family(writer, "baton_http_requests_total");
  uint64_t requests = 0;
  for (const auto& worker : workers_) requests += worker->requests.value();
  writer.sample({}, requests);
  family(writer, "baton_model_ready");
  for (const auto& [name, entry] : directory.models) {
    for (const auto& [version, served] : entry->versions) {
      const std::string version_text = std::to_string(version);
      const std::array<Label, 2> labels = {{{"model", name}, {"version", version_text}}};
      writer.sample(labels, uint64_t{served->state == ModelState::kReady});
    }
  }
  write_process(writer, process);
  writer.finish();
  return out;
}

}  // namespace baton::service
