#include <fmt/format.h>

#include "base/json_writer.h"
#include "sim/run.h"

namespace baton::sim {

std::string reproduce_command(const ScenarioOptions& options) {
  std::string command =
      fmt::format("baton sim run --seed {} --scenario {}", options.seed, options.scenario);
  if (options.duration > Duration()) {
    command += fmt::format(" --duration {:g}s", options.duration.seconds());
  }
  if (options.fault != PlantedFault::kNone) {
    command += fmt::format(" --fault {}", planted_fault_name(options.fault));
  }
  return command;
}

std::string render_text(const ScenarioResult& result) {
  std::string text = fmt::format(
      "{}: {}\n"
      "  {:g} s of virtual time, seed {}, {} events, trace {:016x}\n"
      "  {} requests: {} answered, {} refused, {} expired, {} cancelled, {} failed\n"
      "  latency ms: mean {:.3f}, p50 {:.3f}, p90 {:.3f}, p99 {:.3f}, p99.9 {:.3f}\n"
      "  {} batches, {:.2f} items each\n",
      result.options.scenario, result.about, result.duration.seconds(), result.options.seed,
      result.events, result.trace_hash, result.submitted, result.answered, result.refused,
      result.expired, result.cancelled, result.failed, result.latency.mean().seconds() * 1e3,
      result.latency.quantile(0.5).seconds() * 1e3, result.latency.quantile(0.9).seconds() * 1e3,
      result.latency.quantile(0.99).seconds() * 1e3, result.latency.quantile(0.999).seconds() * 1e3,
      result.batches, result.mean_batch());
  if (result.passed()) return text + "  every invariant held\n";
  for (const Violation& violation : result.violations) {
    text += fmt::format("  FAILED at {:.6f} s: {}: {}\n", (violation.when - Instant()).seconds(),
                        violation_name(violation.kind), violation.text);
  }
  return text + "  reproduce: " + reproduce_command(result.options) + "\n";
}

std::string render_json(const ScenarioResult& result) {
  std::string text;
  JsonWriter json(text);
  json.begin_object()
      .field("scenario", result.options.scenario)
      .field("seed", result.options.seed)
      .field("virtual_seconds", result.duration.seconds())
      .field("passed", result.passed())
      .field("trace_hash", fmt::format("{:016x}", result.trace_hash))
      .field("events", result.events)
      .field("submitted", result.submitted)
      .field("answered", result.answered)
      .field("refused", result.refused)
      .field("expired", result.expired)
      .field("cancelled", result.cancelled)
      .field("failed", result.failed)
      .field("batches", result.batches)
      .field("mean_batch_items", result.mean_batch())
      .field("latency_mean_ms", result.latency.mean().seconds() * 1e3);
  for (const auto& [name, q] :
       {std::pair("latency_p50_ms", 0.5), std::pair("latency_p90_ms", 0.9),
        std::pair("latency_p99_ms", 0.99), std::pair("latency_p999_ms", 0.999)}) {
    json.field(name, result.latency.quantile(q).seconds() * 1e3);
  }
  json.key("violations").begin_array();
  for (const Violation& violation : result.violations) {
    json.begin_object()
        .field("kind", violation_name(violation.kind))
        .field("at_ns", violation.when.ns())
        .field("text", violation.text)
        .end_object();
  }
  json.end_array().field("reproduce", reproduce_command(result.options)).end_object();
  return text;
}

}  // namespace baton::sim
