#pragma once

#include <optional>

#include "base/result.h"
#include "domain/model.h"

namespace baton::service {

// Rows that a derived configuration lets into one batch: what pays is measured inside it.
inline constexpr uint32_t kDerivedMaxBatch = 32;

// Completes an operator's configuration from the model file, and checks it against it. Inputs and
// outputs that are not named are taken over. Error: the tensor, what was found and what was
// expected.
[[nodiscard]] Result<ModelConfig, LoadFailure> complete_config(ModelConfig config,
                                                               const ModelSignature& signature);

// The configuration of a model without config.pbtxt. It batches when the first dimension of every
// input and output is -1 and every input has a second one: a lone -1 is more often a length than a
// batch.
[[nodiscard]] ModelConfig derive_config(const std::string& name, const ModelSignature& signature);

// True when a run's time depends on its rows alone: every dimension but the batch's is fixed, no
// input is BYTES and the file holds no control flow. Only such a run is predicted well enough to
// stay on a worker's thread.
[[nodiscard]] bool has_steady_runs(const ModelConfig& config, const ModelSignature& signature);

// A copy of a derived configuration that does not batch.
[[nodiscard]] ModelConfig without_batching(const ModelConfig& config,
                                           const ModelSignature& signature);

}  // namespace baton::service
