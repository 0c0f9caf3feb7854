#pragma once
// Internal to this room: which execution providers a configuration asks for.

#include <array>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/execution_provider.h"
#include "domain/model.h"

namespace inference {
class ModelConfig;
}

namespace baton::protocol::model_config {

// Parameters of a model that are options of the CUDA provider, in ONNX Runtime's names.
inline constexpr std::array<std::string_view, 4> kCudaParameters = {
    "cudnn_conv_algo_search", "gpu_mem_limit", "arena_extend_strategy",
    "do_copy_in_default_stream"};

// In the order in which they are asked to take nodes: TensorRT, CUDA. Of instance groups of
// KIND_GPU and of optimization.execution_accelerators. Error: an accelerator that is not known, an
// option with a value that it does not take, or instances on the CPU and a GPU or on several GPUs.
[[nodiscard]] Result<std::vector<ExecutionProvider>, LoadFailure> read_providers(
    const inference::ModelConfig& proto);

}  // namespace baton::protocol::model_config
