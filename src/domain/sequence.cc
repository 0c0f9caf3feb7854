#include "domain/sequence.h"

#include <algorithm>
#include <limits>

#include "base/bytes.h"
#include "domain/model.h"

namespace baton {
namespace {

template <class T>
Result<std::string, Refusal> integer_of(const CorrelationId& id, const SequenceControl& control) {
  if (!id.text.empty() || id.number > static_cast<uint64_t>(std::numeric_limits<T>::max())) {
    return fail(Refusal{EndReason::kInvalid,
                        "sequence_id " + correlation_text(id) +
                            " does not fit the model's input \"" + control.input + "\" of type " +
                            std::string(data_type_name(control.type)),
                        {}});
  }
  return value_bytes(static_cast<T>(id.number));
}

void add_spec(std::vector<TensorSpec>& specs, const std::string& name, DataType type,
              const Shape& dims) {
  if (std::ranges::find(specs, name, &TensorSpec::name) != specs.end()) return;
  specs.push_back({.name = name, .type = type, .dims = dims});
}

}  // namespace

std::string correlation_text(const CorrelationId& id) {
  return id.text.empty() ? std::to_string(id.number) : "\"" + id.text + "\"";
}

uint32_t live_sequences(const ModelConfig& config) {
  const SequenceConfig& sequences = *config.sequences;
  const bool direct = sequences.strategy == SequenceConfig::Strategy::kDirect;
  const uint64_t each = std::max(direct ? config.max_batch_size : sequences.max_candidates, 1U);
  return static_cast<uint32_t>(
      std::min<uint64_t>(each * std::max(config.instance_count, 1U), UINT32_MAX));
}

ModelConfig with_sequence_tensors(const ModelConfig& config) {
  ModelConfig whole = config;
  if (!config.sequences) return whole;
  for (const SequenceControl& control : config.sequences->controls) {
    add_spec(whole.inputs, control.input, control.type, control.dims);
  }
  for (const SequenceState& state : config.sequences->states) {
    // As it is first: warm-up takes what a sequence begins with.
    add_spec(whole.inputs, state.input, state.type, state.first.dims);
    add_spec(whole.outputs, state.output, state.type, state.dims);
  }
  return whole;
}

Result<std::string, Refusal> correlation_element(const CorrelationId& id,
                                                 const SequenceControl& control) {
  switch (control.type) {
    case DataType::kUint64:
      return integer_of<uint64_t>(id, control);
    case DataType::kInt64:
      return integer_of<int64_t>(id, control);
    case DataType::kUint32:
      return integer_of<uint32_t>(id, control);
    case DataType::kInt32:
      return integer_of<int32_t>(id, control);
    default:
      break;
  }
  const std::string text = id.text.empty() ? std::to_string(id.number) : id.text;
  return value_bytes(static_cast<uint32_t>(text.size())) + text;
}

}  // namespace baton
