#pragma once
// Tensors of a request that stand in shared memory.

#include <cstdint>

#include "base/result.h"
#include "domain/request.h"
#include "ports/shared_memory.h"

namespace baton::service {

// Bytes of the inputs, or of a result's outputs, that are to be copied. O(tensors).
[[nodiscard]] uint64_t shared_input_bytes(const InferRequest& request);
[[nodiscard]] uint64_t shared_output_bytes(const InferRequest& request, const InferResult& result);
// Whether the request names shared memory at all.
[[nodiscard]] bool uses_shared_memory(const InferRequest& request);

// Copies the inputs out of their regions and checks that each holds exactly its shape's elements:
// what a client writes there later has no effect. Error: kInvalid.
[[nodiscard]] Result<void, Refusal> read_shared_inputs(InferRequest& request,
                                                       const ports::SharedMemory& memory);
// Copies the outputs that are wanted there into their regions; they leave `result` and stand in it
// by their place alone. Error: kInvalid, when one does not fit.
[[nodiscard]] Result<void, Refusal> write_shared_outputs(const InferRequest& request,
                                                         InferResult& result,
                                                         const ports::SharedMemory& memory);

}  // namespace baton::service
