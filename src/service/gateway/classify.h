#pragma once
// The classification extension: the best elements of an output instead of the output.

#include <cstdint>

#include "domain/model.h"
#include "domain/request.h"

namespace baton::service {

// Whether elements of this type have an order that can be asked for.
[[nodiscard]] bool can_classify(DataType type);

// How many bytes classify_outputs() makes at most; 0 when the request asks for no classes.
[[nodiscard]] uint64_t classified_bytes(const InferRequest& request, const InferResult& result,
                                        const ModelConfig& config);

// Puts "value:index[:label]" elements in place of each output that classes are asked of: the
// `classification` best of each row of the batch, or all of a shorter row, by value and then by
// index, NaN last. Shape [rows, classes], [classes] where the model does not batch. A value is the
// shortest text that reads back to it. O(elements) time and O(classes) memory beside the answer.
void classify_outputs(const InferRequest& request, InferResult& result, const ModelConfig& config);

}  // namespace baton::service
