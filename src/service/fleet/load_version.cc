#include "service/fleet/load_version.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "protocol/model_config/model_config.h"
#include "service/batching/warm_up.h"
#include "service/fleet/complete_config.h"
#include "service/fleet/tensorrt_profiles.h"

namespace baton::service {
namespace {

constexpr size_t kMostWarmupBytes = 256ULL << 20;
constexpr size_t kMostLabelBytes = 16ULL << 20;
constexpr size_t kMostStateBytes = 256ULL << 20;  // of one state

using Instances = std::vector<std::unique_ptr<ports::RuntimeInstance>>;
using WarmupFiles = std::map<std::string, std::string>;

Result<WarmupFiles, LoadFailure> read_warmup_files(const LoadPorts& ports,
                                                   const LoadRequest& request,
                                                   const ModelConfig& config) {
  WarmupFiles files;
  for (const WarmupSample& sample : config.warmups) {
    for (const auto& [name, input] : sample.inputs) {
      if (input.source != WarmupInput::Source::kFile) continue;
      BATON_ASSIGN(files[input.file],
                   ports.repository.read_file(request.model, input.file, kMostWarmupBytes));
    }
  }
  return files;
}

// A line an index; an empty last one is the end of the line before it.
LabelList split_lines(std::string_view text) {
  LabelList labels;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    labels.longest = std::max(labels.longest, line.size());
    labels.lines.emplace_back(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return labels;
}

Result<void, LoadFailure> read_labels(const LoadPorts& ports, const LoadRequest& request,
                                      ModelConfig& config) {
  for (TensorSpec& output : config.outputs) {
    if (output.label_file.empty()) continue;
    const std::string label = "output \"" + output.name + "\": label_filename: ";
    auto text = ports.repository.read_file(request.model, output.label_file, kMostLabelBytes);
    if (!text.has_value()) {
      return fail(LoadFailure{label + text.error().message, text.error().detail});
    }
    if (!is_valid_utf8(*text)) return fail(LoadFailure{label + "the file is not UTF-8"});
    output.labels = std::make_shared<const LabelList>(split_lines(*text));
  }
  return {};
}

// The bytes of what sequences begin with.
Result<void, LoadFailure> read_first_states(const LoadPorts& ports, const LoadRequest& request,
                                            ModelConfig& config) {
  if (!config.sequences) return {};
  for (SequenceState& state : config.sequences->states) {
    const std::string label = "state \"" + state.input + "\": initial_state: ";
    const uint64_t bytes = element_count(state.first.dims).value_or(0) * element_size(state.type);
    if (bytes > kMostStateBytes) {
      return fail(LoadFailure{label + "it has " + std::to_string(bytes) + " bytes; the limit is " +
                              std::to_string(kMostStateBytes)});
    }
    std::string data(state.first.file.empty() ? bytes : 0, '\0');
    if (!state.first.file.empty()) {
      auto read = ports.repository.read_file(request.model, state.first.file, kMostStateBytes);
      if (!read.has_value()) {
        return fail(LoadFailure{label + read.error().message, read.error().detail});
      }
      data = std::move(*read);
    }
    if (data.size() != bytes) {
      return fail(LoadFailure{label + "the file has " + std::to_string(data.size()) +
                              " bytes; its dims and data_type need " + std::to_string(bytes)});
    }
    state.first_bytes = std::make_shared<const std::string>(std::move(data));
  }
  return {};
}

Result<void, LoadFailure> go_on(const ports::Cancellation& cancellation) {
  if (cancellation.requested()) return fail(LoadFailure{std::string(kLoadingStopped)});
  return {};
}

Result<Instances, LoadFailure> make_instances(ports::ModelRuntime& runtime,
                                              const ModelConfig& config,
                                              const ports::Cancellation& cancellation) {
  Instances instances;
  for (uint32_t i = 0; i < config.instance_count; ++i) {
    BATON_TRY(go_on(cancellation));
    BATON_ASSIGN(auto instance, runtime.create_instance(config));
    instances.push_back(std::move(instance));
  }
  return instances;
}

// Everything but the file that makes a run faster or slower.
std::string options_text(const ModelConfig& config) {
  const RuntimeOptions& runtime = config.runtime;
  std::string device = "cpu";
  for (const ExecutionProvider& provider : runtime.providers) {
    device += "+" + std::string(provider_name(provider.kind));
    for (const auto& [key, value] : provider.options) device += "," + key + "=" + value;
  }
  return fmt::format("{}/intra{}/inter{}/{}/graph{}/arena{:d}/pattern{:d}/instances{}/batch{}{}",
                     device, runtime.intra_op_threads, runtime.inter_op_threads,
                     runtime.parallel_execution ? "parallel" : "sequential", runtime.graph_level,
                     runtime.memory_arena, runtime.memory_pattern, config.instance_count,
                     config.max_batch_size, config.batching.enabled ? "" : "/apart");
}

ports::CurveKey curve_key(const LoadPorts& ports, const LoadRequest& request,
                          const ModelConfig& config, const std::string& file) {
  return {request.model.name, request.version,
          ports.repository.fingerprint(file) + ":" + options_text(config) + ":" +
              ports.runtime.version()};
}

// A curve that an earlier process measured. A store that fails costs a measurement, not a model.
std::optional<LatencyCurve> known_curve(const LoadPorts& ports, const ports::CurveKey& key,
                                        std::vector<std::string>& remarks) {
  if (ports.store == nullptr) return std::nullopt;
  auto loaded = ports.store->load_curve(key);
  if (loaded.has_value()) return std::move(*loaded);
  remarks.push_back("its curve is measured again: " + loaded.error().message);
  return std::nullopt;
}

// An instance whose runs end early when loading is cancelled.
class Cancellable final : public ports::RuntimeInstance {
 public:
  Cancellable(ports::RuntimeInstance& inner, ports::Cancellation& cancellation)
      : inner_(inner), cancellation_(cancellation) {}
  Result<ports::BatchResult, ports::RunFailure> run(
      std::span<const InferRequest* const> members) override {
    Result<ports::BatchResult, ports::RunFailure> outcome =
        fail(ports::RunFailure{.terminated = true, .message = "terminated"});
    cancellation_.run([&] { outcome = inner_.run(members); }, [&] { inner_.terminate(); });
    return outcome;
  }
  void terminate() override { inner_.terminate(); }

 private:
  ports::RuntimeInstance& inner_;
  ports::Cancellation& cancellation_;
};

struct Warmed {
  Instances instances;
  WarmUpReport report;
};

// As many instances as the configuration says. With sequences, their tensors are the runtime's too.
Result<Warmed, WarmUpFailure> warm(const LoadPorts& ports, ports::ModelRuntime& runtime,
                                   const ModelConfig& served, const WarmUpOptions& options,
                                   ports::Cancellation& cancellation) {
  const ModelConfig config = with_sequence_tensors(served);
  auto instances = make_instances(runtime, config, cancellation);
  if (!instances.has_value()) {
    return fail(WarmUpFailure{WarmUpFailure::Kind::kSample, instances.error().message});
  }
  Warmed warmed{std::move(*instances), {}};
  Instances cancellable;
  for (const auto& instance : warmed.instances) {
    cancellable.push_back(std::make_unique<Cancellable>(*instance, cancellation));
  }
  BATON_ASSIGN(warmed.report, warm_up(cancellable, config, options, ports.clock));
  return warmed;
}

void add_remarks(const WarmUpReport& report, bool batches, std::vector<std::string>& remarks) {
  if (!report.not_measured.empty()) remarks.push_back("not measured: " + report.not_measured);
  if (!report.not_checked.empty() && report.not_measured.empty() && batches) {
    remarks.push_back("a batch was not compared with single runs: " + report.not_checked);
  }
}

}  // namespace

Result<OpenedVersion, LoadFailure> open_version(const LoadPorts& ports,
                                                const LoadRequest& request) {
  const ModelConfig defaults;
  const ModelConfig& asked = request.config ? *request.config : defaults;
  OpenedVersion opened;
  BATON_ASSIGN(opened.file,
               ports.repository.model_file(request.model, request.version, asked.default_file));
  ModelConfig profiled = asked;
  std::string remark;
  add_tensorrt_profiles(profiled, remark);
  BATON_ASSIGN(opened.runtime, ports.runtime.load(opened.file, profiled.runtime));
  opened.remarks = opened.runtime->remarks();
  if (!remark.empty()) opened.remarks.push_back(std::move(remark));
  if (request.config) {
    BATON_ASSIGN(opened.config, complete_config(asked, opened.runtime->signature()));
    opened.config.name = request.model.name;
  } else {
    opened.config = derive_config(request.model.name, opened.runtime->signature());
  }
  BATON_TRY(read_labels(ports, request, opened.config));
  BATON_TRY(read_first_states(ports, request, opened.config));
  BATON_ASSIGN(opened.warmup_files, read_warmup_files(ports, request, opened.config));
  return opened;
}

Result<ports::LoadedVersion, LoadFailure> load_version(const LoadPorts& ports,
                                                       const LoadRequest& request,
                                                       const std::function<void()>& on_warming,
                                                       ports::Cancellation& cancellation) {
  BATON_TRY(go_on(cancellation));
  BATON_ASSIGN(OpenedVersion opened, open_version(ports, request));
  BATON_TRY(go_on(cancellation));
  on_warming();
  const ports::CurveKey key = curve_key(ports, request, opened.config, opened.file);
  ports::LoadedVersion loaded;
  loaded.remarks = std::move(opened.remarks);
  loaded.version = request.version;
  loaded.curve_key = key;
  const auto known = known_curve(ports, key, loaded.remarks);
  WarmUpOptions options;
  options.known = known ? &*known : nullptr;
  options.files = &opened.warmup_files;
  const auto warm_all = [&] {
    return warm(ports, *opened.runtime, opened.config, options, cancellation);
  };
  auto warmed = warm_all();
  if (!warmed.has_value() && !request.config && opened.config.batches() &&
      warmed.error().kind != WarmUpFailure::Kind::kSample) {
    // Nobody asked for batching: a model that cannot is served one request at a time.
    loaded.remarks.push_back("served without batching: " + warmed.error().message);
    opened.config = without_batching(opened.config, opened.runtime->signature());
    options.known = nullptr;
    warmed = warm_all();
  }
  BATON_TRY(go_on(cancellation));  // what was measured until then is no curve
  if (!warmed.has_value()) return fail(LoadFailure{warmed.error().message});
  add_remarks(warmed->report, opened.config.batches(), loaded.remarks);
  loaded.curve = warmed->report.curve.empty() && known ? *known : warmed->report.curve;
  if (ports.store != nullptr && !loaded.curve.empty() && !known) {
    auto saved = ports.store->save_curve(key, loaded.curve);
    if (!saved.has_value())
      loaded.remarks.push_back("its curve was not saved: " + saved.error().message);
  }
  loaded.instances = std::move(warmed->instances);
  loaded.steady_runs = has_steady_runs(opened.config, opened.runtime->signature());
  loaded.runtime = std::move(opened.runtime);
  loaded.config = std::move(opened.config);
  protocol::model_config::encode_model_config(loaded.config);
  return loaded;
}

Result<ScaledVersion, LoadFailure> scale_version(const LoadPorts& ports,
                                                 const ScaleRequest& request,
                                                 ports::InstanceControl& control,
                                                 ports::Cancellation& cancellation) {
  BATON_TRY(go_on(cancellation));
  const uint32_t count = request.load.config->instance_count;
  Instances more;
  if (count > request.served.instance_count) {
    ModelConfig missing = request.served;
    missing.instance_count = count - request.served.instance_count;
    BATON_ASSIGN(const WarmupFiles files, read_warmup_files(ports, request.load, missing));
    WarmUpOptions options;
    options.files = &files;
    options.known = request.curve.empty() ? nullptr : &request.curve;
    auto warmed = warm(ports, *control.runtime, missing, options, cancellation);
    BATON_TRY(go_on(cancellation));
    if (!warmed.has_value()) return fail(LoadFailure{warmed.error().message});
    more = std::move(warmed->instances);
  }
  ScaledVersion scaled;
  scaled.config = request.served;
  scaled.config.instance_count = count;
  BATON_ASSIGN(const std::string file,
               ports.repository.model_file(request.load.model, request.load.version,
                                           scaled.config.default_file));
  scaled.curve_key = curve_key(ports, request.load, scaled.config, file);
  control.resize(std::move(more), count);
  protocol::model_config::encode_model_config(scaled.config);
  return scaled;
}

}  // namespace baton::service
