#pragma once
// Internal to this room: sequence_batching, from config.pbtxt and back.

#include "base/json_writer.h"
#include "base/result.h"
#include "domain/model.h"

namespace inference {
class ModelConfig;
class ModelSequenceBatching;
}  // namespace inference

namespace baton::protocol::model_config {

// Sets `sequences`, and `batching` as the strategy says, of a configuration whose batch size and
// inputs are set. Without sequence_batching: no effect. Error: names the field, what was found and
// what was expected.
[[nodiscard]] Result<void, LoadFailure> read_sequences(const inference::ModelConfig& proto,
                                                       ModelConfig& config);

// The way back, of a configuration that has sequences.
void set_sequences(const ModelConfig& config, inference::ModelSequenceBatching& proto);
void write_sequences(JsonWriter& json, const ModelConfig& config);

}  // namespace baton::protocol::model_config
