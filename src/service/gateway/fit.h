#pragma once

#include "base/result.h"
#include "domain/end_reason.h"
#include "domain/model.h"
#include "domain/request.h"

namespace baton::service {

// Checks a request against the model: names, types, shapes, batch size, outputs. On success the
// inputs stand in the model's order with the runtime's shapes, and `items` and `batch_key` are set.
// Error: kInvalid with what was found and expected.
[[nodiscard]] Result<void, Refusal> fit_to_model(InferRequest& request, const ModelConfig& config);

// Gives outputs whose configuration reshapes them the shape that clients know.
void reshape_outputs(InferResult& result, const ModelConfig& config);

}  // namespace baton::service
