#include "service/gateway/fit.h"

#include <algorithm>
#include <span>

#include "service/gateway/classify.h"

namespace baton::service {
namespace {

Refusal invalid(std::string message) {
  return {EndReason::kInvalid, std::move(message), {}};
}

Shape full_dims(const TensorSpec& spec, bool batches) {
  Shape dims;
  if (batches) dims.push_back(-1);
  dims.insert(dims.end(), spec.dims.begin(), spec.dims.end());
  return dims;
}

bool shape_fits(const Shape& shape, const TensorSpec& spec, bool batches) {
  const size_t lead = batches ? 1 : 0;
  if (shape.size() != spec.dims.size() + lead) return false;
  for (size_t i = 0; i < spec.dims.size(); ++i) {
    if (spec.dims[i] != -1 && spec.dims[i] != shape[i + lead]) return false;
  }
  return true;
}

Result<void, Refusal> check_input(const Tensor& input, const TensorSpec& spec,
                                  const ModelConfig& config) {
  const auto label = [&] { return "input \"" + spec.name + "\" of model \"" + config.name + "\""; };
  if (input.type != spec.type) {
    return fail(invalid(label() + " is " + std::string(data_type_name(spec.type)) +
                        ", the request has " + std::string(data_type_name(input.type))));
  }
  if (!shape_fits(input.shape, spec, config.batches())) {
    return fail(invalid(label() + " has shape " + shape_text(full_dims(spec, config.batches())) +
                        ", the request has " + shape_text(input.shape)));
  }
  return {};
}

// All inputs carry the same number of rows, from 1 to the model's maximum.
Result<uint64_t, Refusal> batch_rows(const InferRequest& request, const ModelConfig& config) {
  const int64_t rows = request.inputs.front().shape.front();
  for (const Tensor& input : request.inputs) {
    if (input.shape.front() != rows) {
      return fail(invalid("the inputs differ in their batch dimension: \"" +
                          request.inputs.front().name + "\" has " + std::to_string(rows) + ", \"" +
                          input.name + "\" has " + std::to_string(input.shape.front())));
    }
  }
  if (rows < 1 || rows > int64_t{config.max_batch_size}) {
    return fail(invalid("the request's batch size " + std::to_string(rows) +
                        " is not within 1 and " + std::to_string(config.max_batch_size) +
                        ", the maximum of model \"" + config.name + "\""));
  }
  return static_cast<uint64_t>(rows);
}

Result<void, Refusal> check_outputs(const InferRequest& request, const ModelConfig& config) {
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    const std::string& name = request.outputs[i].name;
    const auto spec = std::ranges::find(config.outputs, name, &TensorSpec::name);
    if (spec == config.outputs.end()) {
      return fail(invalid("model \"" + config.name + "\" has no output \"" + name + "\""));
    }
    if (request.outputs[i].classification > 0 && !can_classify(spec->type)) {
      return fail(invalid("output \"" + name + "\" is " + std::string(data_type_name(spec->type)) +
                          ": \"classification\" needs numbers"));
    }
    for (size_t j = 0; j < i; ++j) {
      if (request.outputs[j].name == name) {
        return fail(invalid("output \"" + name + "\" is requested twice"));
      }
    }
  }
  return {};
}

// Puts the inputs into the model's order, so that equal layouts compare equal whatever order
// clients use.
Result<void, Refusal> order_inputs(InferRequest& request, const ModelConfig& config) {
  if (std::ranges::equal(request.inputs, config.inputs, {}, &Tensor::name, &TensorSpec::name)) {
    for (size_t i = 0; i < config.inputs.size(); ++i) {
      BATON_TRY(check_input(request.inputs[i], config.inputs[i], config));
    }
    return {};
  }
  std::vector<Tensor> ordered;
  ordered.reserve(request.inputs.size());
  for (const TensorSpec& spec : config.inputs) {
    const auto found = std::ranges::find(request.inputs, spec.name, &Tensor::name);
    if (found == request.inputs.end()) {
      if (spec.optional) continue;
      return fail(invalid("the request lacks input \"" + spec.name + "\" of model \"" +
                          config.name + "\""));
    }
    BATON_TRY(check_input(*found, spec, config));
    ordered.push_back(*found);
  }
  if (ordered.size() != request.inputs.size()) {
    for (size_t i = 0; i < request.inputs.size(); ++i) {
      const std::string& name = request.inputs[i].name;
      if (std::ranges::find(config.inputs, name, &TensorSpec::name) == config.inputs.end()) {
        return fail(invalid("model \"" + config.name + "\" has no input \"" + name + "\""));
      }
    }
    return fail(invalid("the request names an input twice"));
  }
  request.inputs = std::move(ordered);
  return {};
}

// A step of a sequence is one row, so that steps of several sequences share a batch.
Result<void, Refusal> check_sequence(const InferRequest& request, const ModelConfig& config) {
  const SequenceStep& step = request.sequence;
  const auto model = [&] { return "model \"" + config.name + "\""; };
  if (!config.sequences) {
    return fail(invalid(model() +
                        " keeps no sequences: sequence_id, sequence_start and sequence_end "
                        "have no meaning for it"));
  }
  if (!step.id.given()) {
    return fail(invalid(model() + " keeps sequences: the request needs a sequence_id, an integer "
                                  "above 0 or a text"));
  }
  for (const SequenceControl& control : config.sequences->controls) {
    if (control.kind != SequenceControl::Kind::kCorrelationId) continue;
    if (auto element = correlation_element(step.id, control); !element.has_value()) {
      return fail(std::move(element).error());
    }
  }
  if (request.items == 1) return {};
  return fail(invalid("the request's batch size is " + std::to_string(request.items) +
                      "; a request of a sequence has 1"));
}

}  // namespace

Result<void, Refusal> fit_to_model(InferRequest& request, const ModelConfig& config) {
  BATON_TRY(order_inputs(request, config));
  BATON_TRY(check_outputs(request, config));
  request.items = 1;
  if (config.batches() && !request.inputs.empty()) {
    BATON_ASSIGN(request.items, batch_rows(request, config));
  }
  if (config.sequences || request.sequence.given()) BATON_TRY(check_sequence(request, config));
  for (Tensor& input : request.inputs) {
    const auto spec = std::ranges::find(config.inputs, input.name, &TensorSpec::name);
    if (spec->reshape) input.shape = runtime_shape(*spec, input.shape, config.batches());
  }
  request.batch_key = layout_hash(request, config.batches());
  return {};
}

void reshape_outputs(InferResult& result, const ModelConfig& config) {
  for (Tensor& output : result.outputs) {
    const auto spec = std::ranges::find(config.outputs, output.name, &TensorSpec::name);
    if (spec == config.outputs.end() || !spec->reshape) continue;
    output.shape = client_shape(*spec, output.shape, config.batches());
  }
}

}  // namespace baton::service
