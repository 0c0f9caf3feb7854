#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "baton_inference.pb.h"
#include "protocol/model_config/data_types.h"
#include "protocol/model_config/honoured.h"
#include "protocol/model_config/model_config.h"
#include "protocol/model_config/providers.h"
#include "protocol/model_config/sequences.h"

namespace baton::protocol::model_config {
namespace {

constexpr uint32_t kMostInstances = 256;
constexpr uint32_t kMostBatch = 1 << 16;
constexpr uint32_t kMostLevels = 256;

constexpr std::string_view kFileName = "config.pbtxt";

LoadFailure wrong(std::string message) {
  return {std::string(kFileName) + ": " + std::move(message)};
}

// Keeps the first error with its place.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) {
      text_ = "line " + std::to_string(line + 1) + ", column " + std::to_string(column + 1) + ": " +
              message;
    }
  }
  void AddWarning(int, int, const std::string&) override {}
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

Result<Shape, LoadFailure> read_dims(const google::protobuf::RepeatedField<int64_t>& dims,
                                     const std::string& label) {
  Shape shape(dims.begin(), dims.end());
  for (int64_t dim : shape) {
    if (dim < -1 || dim == 0) {
      return fail(wrong(label + " has dimension " + std::to_string(dim) +
                        "; a dimension is positive, or -1 for any"));
    }
  }
  return shape;
}

template <class Proto>
Result<TensorSpec, LoadFailure> read_tensor(const Proto& proto, const std::string& side) {
  TensorSpec spec;
  spec.name = proto.name();
  const std::string label = side + " \"" + spec.name + "\"";
  if (spec.name.empty()) return fail(wrong("an " + side + " has no name"));
  const auto type = from_config(proto.data_type());
  if (!type) return fail(wrong(label + " has no data_type"));
  spec.type = *type;
  if (proto.dims().empty()) return fail(wrong(label + " has no dims"));
  BATON_ASSIGN(spec.dims, read_dims(proto.dims(), label));
  if (proto.has_reshape()) {
    BATON_ASSIGN(spec.reshape, read_dims(proto.reshape().shape(), label + " reshape"));
  }
  return spec;
}

// For the model's clients, which read it from the configuration.
Result<PictureFormat, LoadFailure> read_format(const inference::ModelInput& proto) {
  if (proto.format() == inference::ModelInput::FORMAT_NONE) return PictureFormat::kNone;
  if (proto.dims_size() != 3) {
    return fail(wrong("input \"" + proto.name() + "\" has " + std::to_string(proto.dims_size()) +
                      " dims; " + inference::ModelInput::Format_Name(proto.format()) + " takes 3"));
  }
  return proto.format() == inference::ModelInput::FORMAT_NHWC ? PictureFormat::kNhwc
                                                              : PictureFormat::kNchw;
}

template <class Protos>
Result<std::vector<TensorSpec>, LoadFailure> read_tensors(const Protos& protos,
                                                          const std::string& side) {
  std::vector<TensorSpec> specs;
  std::set<std::string> names;
  for (const auto& proto : protos) {
    BATON_ASSIGN(TensorSpec spec, read_tensor(proto, side));
    if (!names.insert(spec.name).second) {
      return fail(wrong(side + " \"" + spec.name + "\" stands twice"));
    }
    if constexpr (requires { proto.optional(); }) {
      spec.optional = proto.optional();
      BATON_ASSIGN(spec.format, read_format(proto));
    }
    if constexpr (requires { proto.label_filename(); }) spec.label_file = proto.label_filename();
    specs.push_back(std::move(spec));
  }
  return specs;
}

QueuePolicy read_policy(const inference::ModelQueuePolicy& proto) {
  return {Duration::us(static_cast<int64_t>(
              std::min<uint64_t>(proto.default_timeout_microseconds(), 86'400'000'000))),
          proto.allow_timeout_override(), proto.max_queue_size(),
          proto.timeout_action() == inference::ModelQueuePolicy::DELAY ? TimeoutAction::kDelay
                                                                       : TimeoutAction::kReject};
}

// Both would answer a request before one that came earlier.
Result<void, LoadFailure> check_ordering(const BatchingConfig& batching) {
  if (!batching.preserve_ordering) return {};
  if (batching.priority_levels > 1) {
    return fail(wrong("preserve_ordering allows one priority level; priority_levels is " +
                      std::to_string(batching.priority_levels)));
  }
  const auto delays = [](const QueuePolicy& policy) {
    return policy.timeout_action == TimeoutAction::kDelay;
  };
  if (delays(batching.default_policy) ||
      std::ranges::any_of(batching.level_policies, delays,
                          [](const auto& entry) -> const auto& { return entry.second; })) {
    return fail(wrong("preserve_ordering does not allow timeout_action DELAY"));
  }
  return {};
}

Result<BatchingConfig, LoadFailure> read_batching(const inference::ModelConfig& proto) {
  BatchingConfig batching;
  if (!proto.has_dynamic_batching()) return batching;
  const inference::ModelDynamicBatching& dynamic = proto.dynamic_batching();
  if (proto.max_batch_size() == 0) {
    return fail(wrong("dynamic_batching needs a max_batch_size above 0"));
  }
  batching.enabled = true;
  for (int32_t size : dynamic.preferred_batch_size()) {
    if (size < 1 || size > proto.max_batch_size()) {
      return fail(wrong("preferred_batch_size " + std::to_string(size) +
                        " is not within 1 and max_batch_size " +
                        std::to_string(proto.max_batch_size())));
    }
    batching.preferred_sizes.push_back(static_cast<uint32_t>(size));
  }
  std::ranges::sort(batching.preferred_sizes);
  if (dynamic.max_queue_delay_microseconds() > 60'000'000) {
    return fail(wrong("max_queue_delay_microseconds is at most 60000000"));
  }
  batching.max_delay = Duration::us(static_cast<int64_t>(dynamic.max_queue_delay_microseconds()));
  if (dynamic.priority_levels() > kMostLevels) {
    return fail(wrong("priority_levels is at most " + std::to_string(kMostLevels)));
  }
  batching.priority_levels = static_cast<uint32_t>(dynamic.priority_levels());
  batching.default_priority_level = static_cast<uint32_t>(dynamic.default_priority_level());
  if (batching.priority_levels > 0 &&
      (dynamic.default_priority_level() < 1 ||
       dynamic.default_priority_level() > dynamic.priority_levels())) {
    return fail(wrong("default_priority_level " + std::to_string(dynamic.default_priority_level()) +
                      " is not within 1 and priority_levels " +
                      std::to_string(dynamic.priority_levels())));
  }
  batching.default_policy = read_policy(dynamic.default_queue_policy());
  for (const auto& [level, policy] : dynamic.priority_queue_policy()) {
    if (level < 1 || level > batching.priority_levels) {
      return fail(wrong("priority_queue_policy names level " + std::to_string(level) +
                        ", which is not within priority_levels"));
    }
    batching.level_policies[static_cast<uint32_t>(level)] = read_policy(policy);
  }
  batching.preserve_ordering = dynamic.preserve_ordering();
  BATON_TRY(check_ordering(batching));
  return batching;
}

Result<VersionPolicy, LoadFailure> read_version_policy(const inference::ModelVersionPolicy& proto) {
  VersionPolicy policy;
  if (proto.has_all()) policy.kind = VersionPolicy::Kind::kAll;
  if (proto.has_latest()) policy.latest_count = std::max(proto.latest().num_versions(), 1U);
  if (proto.has_specific()) {
    policy.kind = VersionPolicy::Kind::kSpecific;
    policy.specific.assign(proto.specific().versions().begin(), proto.specific().versions().end());
    if (policy.specific.empty()) return fail(wrong("version_policy.specific names no version"));
  }
  return policy;
}

Result<uint32_t, LoadFailure> read_instances(const inference::ModelConfig& proto) {
  uint64_t total = 0;
  for (const auto& group : proto.instance_group()) {
    if (group.count() < 0) return fail(wrong("instance_group.count is negative"));
    total += static_cast<uint64_t>(std::max(group.count(), 1));
  }
  if (total > kMostInstances) {
    return fail(wrong("instance_group asks for " + std::to_string(total) +
                      " instances; the limit is " + std::to_string(kMostInstances)));
  }
  return static_cast<uint32_t>(std::max<uint64_t>(total, 1));
}

Result<int, LoadFailure> read_int(const std::string& key, const std::string& text, int low,
                                  int high) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    return fail(wrong("parameters." + key + " is \"" + text + "\"; expected an integer from " +
                      std::to_string(low) + " to " + std::to_string(high)));
  }
  return value;
}

Result<double, LoadFailure> read_batch_tolerance(const inference::ModelConfig& proto) {
  const auto found = proto.parameters().find("batch_tolerance");
  if (found == proto.parameters().end()) return 0.0;
  const std::string& text = found->second.string_value();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= 1)) {
    return fail(
        wrong("parameters.batch_tolerance is \"" + text + "\"; expected a number from 0 to 1"));
  }
  return value;
}

Result<RuntimeOptions, LoadFailure> read_runtime(const inference::ModelConfig& proto) {
  RuntimeOptions options;
  for (const auto& [key, value] : proto.parameters()) {
    const std::string& text = value.string_value();
    if (key == "intra_op_thread_count") {
      BATON_ASSIGN(options.intra_op_threads, read_int(key, text, 0, 1024));
    } else if (key == "inter_op_thread_count") {
      BATON_ASSIGN(options.inter_op_threads, read_int(key, text, 0, 1024));
    } else if (key == "execution_mode") {
      BATON_ASSIGN(options.parallel_execution, read_int(key, text, 0, 1));
    } else if (key == "enable_mem_arena") {
      BATON_ASSIGN(options.memory_arena, read_int(key, text, 0, 1));
    } else if (key == "enable_mem_pattern") {
      BATON_ASSIGN(options.memory_pattern, read_int(key, text, 0, 1));
    }
  }
  const int level = proto.optimization().graph().level();
  if (level < -1 || level > 2) {
    return fail(
        wrong("optimization.graph.level is " + std::to_string(level) + "; expected -1, 0, 1 or 2"));
  }
  options.graph_level = level;
  return options;
}

Result<WarmupInput, LoadFailure> read_warmup_input(const std::string& name,
                                                   const inference::ModelWarmup::Input& proto) {
  WarmupInput input;
  const std::string label = "model_warmup input \"" + name + "\"";
  const auto type = from_config(proto.data_type());
  if (!type) return fail(wrong(label + " has no data_type"));
  input.type = *type;
  input.dims.assign(proto.dims().begin(), proto.dims().end());
  if (!element_count(input.dims)) return fail(wrong(label + " has dims that are not positive"));
  if (proto.has_random_data()) input.source = WarmupInput::Source::kRandom;
  if (proto.has_input_data_file()) {
    input.source = WarmupInput::Source::kFile;
    input.file = "warmup/" + proto.input_data_file();
  }
  return input;
}

Result<std::vector<WarmupSample>, LoadFailure> read_warmups(const inference::ModelConfig& proto) {
  std::vector<WarmupSample> samples;
  for (const inference::ModelWarmup& warmup : proto.model_warmup()) {
    WarmupSample sample;
    sample.name = warmup.name();
    if (warmup.batch_size() > kMostBatch || warmup.count() > 1000) {
      return fail(
          wrong("model_warmup \"" + sample.name + "\" has a batch_size or count out of range"));
    }
    sample.batch_size = std::max(warmup.batch_size(), 1U);
    sample.count = std::max(warmup.count(), 1U);
    for (const auto& [name, input] : warmup.inputs()) {
      BATON_ASSIGN(sample.inputs[name], read_warmup_input(name, input));
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

Result<void, LoadFailure> check_engine(const inference::ModelConfig& proto) {
  const std::string& backend = proto.backend();
  const std::string& platform = proto.platform();
  if (!backend.empty() && backend != "onnxruntime") {
    return fail(wrong("backend is \"" + backend + "\"; this engine runs \"onnxruntime\""));
  }
  if (!platform.empty() && platform != "onnxruntime_onnx") {
    return fail(wrong("platform is \"" + platform + "\"; this engine runs \"onnxruntime_onnx\""));
  }
  return {};
}

Result<ModelConfig, LoadFailure> to_domain(const inference::ModelConfig& proto) {
  ModelConfig config;
  BATON_TRY(check_engine(proto));
  config.name = proto.name();
  if (proto.max_batch_size() < 0 || proto.max_batch_size() > int32_t{kMostBatch}) {
    return fail(wrong("max_batch_size is " + std::to_string(proto.max_batch_size()) +
                      "; expected 0 to " + std::to_string(kMostBatch)));
  }
  config.max_batch_size = static_cast<uint32_t>(proto.max_batch_size());
  BATON_ASSIGN(config.inputs, read_tensors(proto.input(), "input"));
  BATON_ASSIGN(config.outputs, read_tensors(proto.output(), "output"));
  BATON_ASSIGN(config.version_policy, read_version_policy(proto.version_policy()));
  BATON_ASSIGN(config.instance_count, read_instances(proto));
  BATON_ASSIGN(config.batching, read_batching(proto));
  BATON_TRY(read_sequences(proto, config));
  BATON_ASSIGN(config.batch_tolerance, read_batch_tolerance(proto));
  BATON_ASSIGN(config.warmups, read_warmups(proto));
  BATON_ASSIGN(config.runtime, read_runtime(proto));
  BATON_ASSIGN(config.runtime.providers, read_providers(proto));
  if (!proto.default_model_filename().empty()) {
    config.default_file = proto.default_model_filename();
  }
  return config;
}

std::string join(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) {
    if (!out.empty()) out += ", ";
    out += item;
  }
  return out;
}

Result<ParsedConfig, LoadFailure> check_fields(const inference::ModelConfig& proto,
                                               Unsupported unsupported) {
  ParsedConfig parsed;
  parsed.ignored = unhonoured_fields(proto);
  if (!parsed.ignored.empty() && unsupported == Unsupported::kRefuse) {
    return fail(wrong("not honoured: " + join(parsed.ignored) +
                      " (`unsupported: warn` in the configuration ignores them)"));
  }
  BATON_ASSIGN(parsed.config, to_domain(proto));
  return parsed;
}

// What protobuf says of a text repeats the text, and points into it, on the lines that follow.
std::string first_line(std::string_view text) {
  return std::string(text.substr(0, std::min<size_t>(text.find('\n'), 200)));
}

}  // namespace

Result<ParsedConfig, LoadFailure> parse_model_config(std::string_view text,
                                                     Unsupported unsupported) {
  inference::ModelConfig proto;
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(32);
  if (!parser.ParseFromString(std::string(text), &proto)) return fail(wrong(error.text()));
  return check_fields(proto, unsupported);
}

Result<ParsedConfig, LoadFailure> parse_model_config_json(std::string_view text,
                                                          Unsupported unsupported) {
  if (text.size() > kMostConfigJson) {
    return fail(LoadFailure{"config: it has " + std::to_string(text.size()) +
                            " bytes; the limit is " + std::to_string(kMostConfigJson)});
  }
  inference::ModelConfig proto;
  const auto status =
      google::protobuf::util::JsonStringToMessage({text.data(), text.size()}, &proto);
  if (!status.ok()) {
    return fail(LoadFailure{"config: it is no ModelConfig in JSON: " +
                            first_line({status.message().data(), status.message().size()})});
  }
  auto parsed = check_fields(proto, unsupported);
  if (parsed.has_value()) return parsed;
  LoadFailure failure = std::move(parsed).error();
  failure.message.replace(0, kFileName.size(), "config");
  return fail(std::move(failure));
}

}  // namespace baton::protocol::model_config
