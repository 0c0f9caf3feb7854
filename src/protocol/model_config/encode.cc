#include <cstdlib>
#include <optional>

#include "base/json_writer.h"
#include "domain/engine_kind.h"
#include "protocol/model_config/data_types.h"
#include "protocol/model_config/model_config.h"
#include "protocol/model_config/sequences.h"

namespace baton::protocol::model_config {
namespace {

// The GPU that the instances are on; nothing for the CPU.
std::optional<int> gpu_of(const RuntimeOptions& runtime) {
  for (const ExecutionProvider& provider : runtime.providers) {
    const auto id = provider.options.find("device_id");
    if (id != provider.options.end()) return std::atoi(id->second.c_str());
  }
  return std::nullopt;
}

template <class Proto>
void set_tensor(const TensorSpec& spec, Proto& proto) {
  proto.set_name(spec.name);
  proto.set_data_type(to_config(spec.type));
  for (int64_t dim : spec.dims) proto.add_dims(dim);
  if (spec.reshape) {
    for (int64_t dim : *spec.reshape) proto.mutable_reshape()->add_shape(dim);
    proto.mutable_reshape();
  }
}

void set_policy(const QueuePolicy& policy, inference::ModelQueuePolicy& proto) {
  proto.set_default_timeout_microseconds(static_cast<uint64_t>(policy.timeout.us()));
  proto.set_allow_timeout_override(policy.allow_override);
  if (policy.timeout_action == TimeoutAction::kDelay) {
    proto.set_timeout_action(inference::ModelQueuePolicy::DELAY);
  }
  proto.set_max_queue_size(static_cast<uint32_t>(policy.max_queue_size));
}

void set_batching(const BatchingConfig& batching, inference::ModelDynamicBatching& proto) {
  for (uint32_t size : batching.preferred_sizes) {
    proto.add_preferred_batch_size(static_cast<int32_t>(size));
  }
  proto.set_max_queue_delay_microseconds(static_cast<uint64_t>(batching.max_delay.us()));
  proto.set_preserve_ordering(batching.preserve_ordering);
  proto.set_priority_levels(batching.priority_levels);
  proto.set_default_priority_level(batching.default_priority_level);
  const QueuePolicy none;
  const QueuePolicy& policy = batching.default_policy;
  if (policy.timeout != none.timeout || policy.max_queue_size != 0 || policy.allow_override ||
      policy.timeout_action != none.timeout_action) {
    set_policy(policy, *proto.mutable_default_queue_policy());
  }
  for (const auto& [level, level_policy] : batching.level_policies) {
    set_policy(level_policy, (*proto.mutable_priority_queue_policy())[level]);
  }
}

void set_version_policy(const VersionPolicy& policy, inference::ModelVersionPolicy& proto) {
  switch (policy.kind) {
    case VersionPolicy::Kind::kLatest:
      proto.mutable_latest()->set_num_versions(policy.latest_count);
      break;
    case VersionPolicy::Kind::kAll:
      proto.mutable_all();
      break;
    case VersionPolicy::Kind::kSpecific:
      for (int64_t version : policy.specific) proto.mutable_specific()->add_versions(version);
      break;
  }
}

inference::ModelInput::Format format_of(PictureFormat format) {
  switch (format) {
    case PictureFormat::kNhwc:
      return inference::ModelInput::FORMAT_NHWC;
    case PictureFormat::kNchw:
      return inference::ModelInput::FORMAT_NCHW;
    case PictureFormat::kNone:
      break;
  }
  return inference::ModelInput::FORMAT_NONE;
}

inference::ModelConfig to_proto(const ModelConfig& config) {
  inference::ModelConfig proto;
  proto.set_name(config.name);
  proto.set_platform(std::string(engine_kind_row(EngineKind::kOnnx).platform));
  proto.set_backend(std::string(engine_kind_row(EngineKind::kOnnx).backend));
  set_version_policy(config.version_policy, *proto.mutable_version_policy());
  proto.set_max_batch_size(static_cast<int32_t>(config.max_batch_size));
  for (const TensorSpec& spec : config.inputs) {
    inference::ModelInput& input = *proto.add_input();
    set_tensor(spec, input);
    input.set_optional(spec.optional);
    input.set_format(format_of(spec.format));
  }
  for (const TensorSpec& spec : config.outputs) {
    inference::ModelOutput& output = *proto.add_output();
    set_tensor(spec, output);
    output.set_label_filename(spec.label_file);
  }
  inference::ModelInstanceGroup& group = *proto.add_instance_group();
  group.set_name(config.name);
  const std::optional<int> gpu = gpu_of(config.runtime);
  group.set_kind(gpu ? inference::ModelInstanceGroup::KIND_GPU
                     : inference::ModelInstanceGroup::KIND_CPU);
  if (gpu) group.add_gpus(*gpu);
  group.set_count(static_cast<int32_t>(config.instance_count));
  proto.set_default_model_filename(config.default_file);
  proto.mutable_optimization()->mutable_graph()->set_level(config.runtime.graph_level);
  if (config.sequences) {
    set_sequences(config, *proto.mutable_sequence_batching());
  } else if (config.batching.enabled) {
    set_batching(config.batching, *proto.mutable_dynamic_batching());
  }
  return proto;
}

void write_tensor(JsonWriter& json, const TensorSpec& spec) {
  json.begin_object().field("name", spec.name);
  json.field("data_type", inference::DataType_Name(to_config(spec.type)));
  json.key("dims").begin_array();
  for (int64_t dim : spec.dims) json.number(dim);
  json.end_array();
  if (spec.reshape) {
    json.key("reshape").begin_object().key("shape").begin_array();
    for (int64_t dim : *spec.reshape) json.number(dim);
    json.end_array().end_object();
  }
  if (spec.optional) json.field("optional", true);
  if (spec.format != PictureFormat::kNone) {
    json.field("format", inference::ModelInput::Format_Name(format_of(spec.format)));
  }
  if (!spec.label_file.empty()) json.field("label_filename", spec.label_file);
  json.end_object();
}

void write_policy(JsonWriter& json, const QueuePolicy& policy) {
  const bool delays = policy.timeout_action == TimeoutAction::kDelay;
  json.begin_object().field("timeout_action", delays ? "DELAY" : "REJECT");
  json.field("default_timeout_microseconds", policy.timeout.us());
  json.field("allow_timeout_override", policy.allow_override);
  json.field("max_queue_size", policy.max_queue_size).end_object();
}

void write_batching(JsonWriter& json, const BatchingConfig& batching) {
  json.key("dynamic_batching").begin_object().key("preferred_batch_size").begin_array();
  for (uint32_t size : batching.preferred_sizes) json.number(uint64_t{size});
  json.end_array().field("max_queue_delay_microseconds", batching.max_delay.us());
  json.field("preserve_ordering", batching.preserve_ordering);
  json.field("priority_levels", uint64_t{batching.priority_levels});
  json.field("default_priority_level", uint64_t{batching.default_priority_level});
  json.key("default_queue_policy");
  write_policy(json, batching.default_policy);
  json.key("priority_queue_policy").begin_object();
  for (const auto& [level, policy] : batching.level_policies) {
    json.key(std::to_string(level));
    write_policy(json, policy);
  }
  json.end_object().end_object();
}

void write_version_policy(JsonWriter& json, const VersionPolicy& policy) {
  json.key("version_policy").begin_object();
  switch (policy.kind) {
    case VersionPolicy::Kind::kLatest:
      json.key("latest").begin_object();
      json.field("num_versions", uint64_t{policy.latest_count}).end_object();
      break;
    case VersionPolicy::Kind::kAll:
      json.key("all").begin_object().end_object();
      break;
    case VersionPolicy::Kind::kSpecific:
      json.key("specific").begin_object().key("versions").begin_array();
      for (int64_t version : policy.specific) json.number(version);
      json.end_array().end_object();
      break;
  }
  json.end_object();
}

std::string to_json(const ModelConfig& config) {
  std::string out;
  JsonWriter json(out);
  const EngineKindRow& kind = engine_kind_row(EngineKind::kOnnx);
  json.begin_object().field("name", config.name);
  json.field("platform", kind.platform).field("backend", kind.backend);
  write_version_policy(json, config.version_policy);
  json.field("max_batch_size", uint64_t{config.max_batch_size});
  json.key("input").begin_array();
  for (const TensorSpec& spec : config.inputs) write_tensor(json, spec);
  json.end_array().key("output").begin_array();
  for (const TensorSpec& spec : config.outputs) write_tensor(json, spec);
  json.end_array().key("instance_group").begin_array().begin_object();
  const std::optional<int> gpu = gpu_of(config.runtime);
  json.field("name", config.name).field("kind", gpu ? "KIND_GPU" : "KIND_CPU");
  if (gpu) json.key("gpus").begin_array().number(int64_t{*gpu}).end_array();
  json.field("count", uint64_t{config.instance_count}).end_object().end_array();
  json.field("default_model_filename", config.default_file);
  json.key("optimization").begin_object().key("graph").begin_object();
  json.field("level", config.runtime.graph_level).end_object().end_object();
  if (config.sequences) {
    write_sequences(json, config);
  } else if (config.batching.enabled) {
    write_batching(json, config.batching);
  }
  json.end_object();
  return out;
}

}  // namespace

void encode_model_config(ModelConfig& config) {
  config.serialized = to_proto(config).SerializeAsString();
  config.json = to_json(config);
}

}  // namespace baton::protocol::model_config
