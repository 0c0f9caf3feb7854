#include "protocol/model_config/honoured.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "protocol/model_config/providers.h"

namespace baton::protocol::model_config {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Everything below these paths is read. "*" stands for a map's keys.
constexpr std::array<std::string_view, 34> kHonoured = {
    "name",
    "platform",
    "backend",
    "version_policy",
    "max_batch_size",
    "input.name",
    "input.data_type",
    "input.dims",
    "input.reshape",
    "input.optional",
    "input.format",
    "output.name",
    "output.data_type",
    "output.dims",
    "output.reshape",
    "output.label_filename",
    "instance_group.name",
    "instance_group.count",
    "instance_group.gpus",
    "default_model_filename",
    "dynamic_batching",
    "sequence_batching.max_sequence_idle_microseconds",
    "sequence_batching.direct",
    "sequence_batching.oldest",
    "sequence_batching.control_input",
    "sequence_batching.state.input_name",
    "sequence_batching.state.output_name",
    "sequence_batching.state.data_type",
    "sequence_batching.state.dims",
    "sequence_batching.state.initial_state",
    "optimization.graph",
    "optimization.execution_accelerators.gpu_execution_accelerator",
    "optimization.execution_accelerators.cpu_execution_accelerator",
    "model_warmup",
};

// Parameters that become session options, and one of ours.
constexpr std::array<std::string_view, 6> kParameters = {
    "batch_tolerance", "intra_op_thread_count", "inter_op_thread_count",
    "execution_mode",  "enable_mem_arena",      "enable_mem_pattern"};

bool covered(std::string_view path) {
  return std::ranges::any_of(kHonoured, [&](std::string_view honoured) {
    return path == honoured || (path.starts_with(honoured) && path[honoured.size()] == '.');
  });
}

bool leads_somewhere(std::string_view path) {
  return std::ranges::any_of(kHonoured, [&](std::string_view honoured) {
    return honoured.starts_with(path) && honoured.size() > path.size() &&
           honoured[path.size()] == '.';
  });
}

class Walk {
 public:
  explicit Walk(std::vector<std::string>& out) : out_(out) {}

  void visit(const Message& message, const std::string& prefix) {
    const Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      const std::string path = prefix + field->name();
      if (path == "parameters") {
        visit_parameters(message, *field);
      } else if (path == "instance_group.kind") {
        visit_kind(reflection.GetEnum(message, field)->name(), path);
      } else if (covered(path)) {
        continue;
      } else if (leads_somewhere(path) && field->message_type() != nullptr) {
        descend(message, *field, path);
      } else {
        out_.push_back(path);
      }
    }
  }

 private:
  void descend(const Message& message, const FieldDescriptor& field, const std::string& path) {
    const Reflection& reflection = *message.GetReflection();
    if (!field.is_repeated()) {
      visit(reflection.GetMessage(message, &field), path + ".");
      return;
    }
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
      if (!field.is_map()) {
        visit(entry, path + ".");
        continue;
      }
      const FieldDescriptor* value = entry.GetDescriptor()->map_value();
      if (value->message_type() != nullptr) {
        visit(entry.GetReflection()->GetMessage(entry, value), path + ".*.");
      }
    }
  }

  void visit_parameters(const Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
      const std::string key =
          entry.GetReflection()->GetString(entry, entry.GetDescriptor()->map_key());
      if (std::ranges::find(kParameters, key) == kParameters.end() &&
          std::ranges::find(kCudaParameters, key) == kCudaParameters.end()) {
        out_.push_back("parameters." + key);
      }
    }
  }

  void visit_kind(const std::string& kind, const std::string& path) {
    if (kind == "KIND_MODEL") out_.push_back(path + ": " + kind);
  }

  std::vector<std::string>& out_;
};

}  // namespace

std::vector<std::string> unhonoured_fields(const Message& config) {
  std::vector<std::string> out;
  Walk(out).visit(config, "");
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

}  // namespace baton::protocol::model_config
