#include "service/fleet/complete_config.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace baton::service {
namespace {

// What the model file must declare for this specification: reshape in place of dims, batch
// dimension in front.
Shape runtime_dims(const TensorSpec& spec, bool batches) {
  Shape dims;
  if (batches) dims.push_back(-1);
  const Shape& rest = spec.reshape ? *spec.reshape : spec.dims;
  dims.insert(dims.end(), rest.begin(), rest.end());
  return dims;
}

bool compatible(std::span<const int64_t> wanted, std::span<const int64_t> found) {
  if (wanted.size() != found.size()) return false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] != -1 && found[i] != -1 && wanted[i] != found[i]) return false;
  }
  return true;
}

Result<void, LoadFailure> check_tensor(const std::string& side, const TensorSpec& spec,
                                       const TensorSpec& found, uint32_t max_batch_size) {
  const std::string label = side + " \"" + spec.name + "\"";
  if (spec.type != found.type) {
    return fail(LoadFailure{label + ": the configuration says " +
                            std::string(data_type_name(spec.type)) + ", the model has " +
                            std::string(data_type_name(found.type))});
  }
  if (max_batch_size > 0 && !found.dims.empty() && found.dims.front() != -1) {
    return fail(LoadFailure{label + ": max_batch_size is " + std::to_string(max_batch_size) +
                            ", so the model's first dimension must be -1; it has shape " +
                            shape_text(found.dims)});
  }
  const Shape wanted = runtime_dims(spec, max_batch_size > 0);
  // A tensor without a declared shape fits every configuration.
  if (!compatible(wanted, found.dims) && !(found.dims.empty() && !wanted.empty())) {
    return fail(LoadFailure{label + ": the configuration expects shape " + shape_text(wanted) +
                            ", the model has " + shape_text(found.dims)});
  }
  return {};
}

TensorSpec strip_batch(TensorSpec spec) {
  if (!spec.dims.empty()) spec.dims.erase(spec.dims.begin());
  return spec;
}

// `own`: tensors of the server's that clients do not see unless the configuration names them.
Result<void, LoadFailure> complete_side(const std::string& side, std::vector<TensorSpec>& specs,
                                        const std::vector<TensorSpec>& found,
                                        std::span<const std::string> own, uint32_t max_batch_size) {
  for (const TensorSpec& spec : specs) {
    const auto match = std::ranges::find(found, spec.name, &TensorSpec::name);
    if (match == found.end()) {
      return fail(LoadFailure{"the model has no " + side + " \"" + spec.name + "\""});
    }
    BATON_TRY(check_tensor(side, spec, *match, max_batch_size));
  }
  const bool chosen = side == "output" && !specs.empty();  // named outputs are a choice
  for (const TensorSpec& tensor : found) {
    if (chosen) break;
    if (tensor.optional) continue;  // the file has a default for it
    if (std::ranges::find(own, tensor.name) != own.end()) continue;
    if (std::ranges::find(specs, tensor.name, &TensorSpec::name) != specs.end()) continue;
    TensorSpec spec = max_batch_size > 0 ? strip_batch(tensor) : tensor;
    BATON_TRY(check_tensor(side, spec, tensor, max_batch_size));
    specs.push_back(std::move(spec));
  }
  return {};
}

Result<const TensorSpec*, LoadFailure> find_tensor(const std::string& side, const std::string& name,
                                                   const std::vector<TensorSpec>& found) {
  const auto match = std::ranges::find(found, name, &TensorSpec::name);
  if (match != found.end()) return &*match;
  return fail(LoadFailure{"sequence_batching: the model has no " + side + " \"" + name + "\""});
}

// Controls take the rank that the file gives them; states are checked as every tensor is.
Result<void, LoadFailure> complete_sequences(SequenceConfig& sequences,
                                             const ModelSignature& signature,
                                             uint32_t max_batch_size) {
  const size_t lead = max_batch_size > 0 ? 1 : 0;
  for (SequenceControl& control : sequences.controls) {
    BATON_ASSIGN(const TensorSpec* found, find_tensor("input", control.input, signature.inputs));
    if (found->dims.size() == lead) control.dims = {};
    const TensorSpec spec{.name = control.input, .type = control.type, .dims = control.dims};
    BATON_TRY(check_tensor("control_input", spec, *found, max_batch_size));
  }
  for (const SequenceState& state : sequences.states) {
    BATON_ASSIGN(const TensorSpec* input, find_tensor("input", state.input, signature.inputs));
    BATON_ASSIGN(const TensorSpec* output, find_tensor("output", state.output, signature.outputs));
    const TensorSpec spec{.name = state.input, .type = state.type, .dims = state.dims};
    BATON_TRY(check_tensor("state", spec, *input, max_batch_size));
    BATON_TRY(check_tensor("state", spec, *output, max_batch_size));
  }
  return {};
}

std::vector<TensorSpec> required_inputs(const ModelSignature& signature) {
  std::vector<TensorSpec> inputs;
  std::ranges::copy_if(signature.inputs, std::back_inserter(inputs),
                       [](const TensorSpec& spec) { return !spec.optional; });
  return inputs;
}

bool may_batch(const std::vector<TensorSpec>& inputs, const std::vector<TensorSpec>& outputs) {
  const auto leads = [](const TensorSpec& spec) {
    return !spec.dims.empty() && spec.dims.front() == -1;
  };
  return !inputs.empty() && std::ranges::all_of(inputs, leads) &&
         std::ranges::all_of(outputs, leads) &&
         std::ranges::all_of(inputs, [](const TensorSpec& spec) { return spec.dims.size() >= 2; });
}

}  // namespace

Result<ModelConfig, LoadFailure> complete_config(ModelConfig config,
                                                 const ModelSignature& signature) {
  std::vector<std::string> own_inputs;
  std::vector<std::string> own_outputs;
  if (config.sequences) {
    for (const auto& control : config.sequences->controls) own_inputs.push_back(control.input);
    for (const auto& state : config.sequences->states) {
      own_inputs.push_back(state.input);
      own_outputs.push_back(state.output);
    }
  }
  const uint32_t rows = config.max_batch_size;
  BATON_TRY(complete_side("input", config.inputs, signature.inputs, own_inputs, rows));
  BATON_TRY(complete_side("output", config.outputs, signature.outputs, own_outputs, rows));
  if (config.sequences) BATON_TRY(complete_sequences(*config.sequences, signature, rows));
  return config;
}

ModelConfig derive_config(const std::string& name, const ModelSignature& signature) {
  ModelConfig config;
  config.name = name;
  config.inputs = required_inputs(signature);
  config.outputs = signature.outputs;
  if (!may_batch(config.inputs, config.outputs)) return config;
  config.max_batch_size = kDerivedMaxBatch;
  config.batching.enabled = true;
  for (TensorSpec& spec : config.inputs) spec = strip_batch(spec);
  for (TensorSpec& spec : config.outputs) spec = strip_batch(spec);
  return config;
}

bool has_steady_runs(const ModelConfig& config, const ModelSignature& signature) {
  if (signature.control_flow) return false;
  return std::ranges::all_of(signature.inputs, [&](const TensorSpec& spec) {
    const auto fixed = std::span<const int64_t>(spec.dims).subspan(config.batches() ? 1 : 0);
    return spec.type != DataType::kBytes &&
           std::ranges::all_of(fixed, [](int64_t dim) { return dim >= 0; });
  });
}

ModelConfig without_batching(const ModelConfig& config, const ModelSignature& signature) {
  ModelConfig single = config;
  single.max_batch_size = 0;
  single.batching = {};
  single.inputs = required_inputs(signature);
  single.outputs = signature.outputs;
  return single;
}

}  // namespace baton::service
