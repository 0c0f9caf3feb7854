#include "protocol/model_config/providers.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "baton_inference.pb.h"

namespace baton::protocol::model_config {
namespace {

using Options = std::map<std::string, std::string>;
using Group = inference::ModelInstanceGroup;

LoadFailure wrong(std::string message) {
  return {"config.pbtxt: " + std::move(message)};
}

// Values that Triton's configurations give as numbers, in ONNX Runtime's words.
std::string in_ort_words(const std::string& key, const std::string& value) {
  if (key == "cudnn_conv_algo_search") {
    if (value == "0") return "EXHAUSTIVE";
    if (value == "1") return "HEURISTIC";
    if (value == "2") return "DEFAULT";
  }
  if (key == "arena_extend_strategy") {
    if (value == "0") return "kNextPowerOfTwo";
    if (value == "1") return "kSameAsRequested";
  }
  return value;
}

// Triton's names of TensorRT's options; others are ONNX Runtime's own and begin with "trt_".
Result<void, LoadFailure> add_tensorrt(const std::string& key, const std::string& value,
                                       Options& out) {
  if (key == "precision_mode") {
    if (value != "FP32" && value != "FP16" && value != "INT8") {
      return fail(wrong("precision_mode is \"" + value + "\"; expected FP32, FP16 or INT8"));
    }
    if (value != "FP32") out["trt_fp16_enable"] = "1";
    if (value == "INT8") out["trt_int8_enable"] = "1";
    return {};
  }
  static const Options kNames = {
      {"max_workspace_size_bytes", "trt_max_workspace_size"},
      {"int8_calibration_table_name", "trt_int8_calibration_table_name"},
      {"int8_use_native_calibration_table", "trt_int8_use_native_calibration_table"}};
  const auto known = kNames.find(key);
  if (known == kNames.end() && !key.starts_with("trt_")) {
    return fail(wrong("the TensorRT accelerator has no parameter \"" + key + "\""));
  }
  out[known == kNames.end() ? key : known->second] = value;
  return {};
}

// The one GPU of all instances; nothing when they are on the CPU.
Result<std::optional<int>, LoadFailure> read_device(const inference::ModelConfig& proto) {
  std::set<int> devices;
  bool on_cpu = false;
  for (const Group& group : proto.instance_group()) {
    if (group.kind() == Group::KIND_GPU) {
      if (group.gpus().empty()) devices.insert(0);
      for (const int gpu : group.gpus()) {
        if (gpu < 0) return fail(wrong("instance_group.gpus holds " + std::to_string(gpu)));
        devices.insert(gpu);
      }
    } else {
      on_cpu = true;
    }
  }
  if (devices.empty()) return std::optional<int>();
  if (on_cpu || devices.size() > 1) {
    return fail(wrong("its instances are on several devices; one GPU or the CPU is offered"));
  }
  return std::optional(*devices.begin());
}

}  // namespace

Result<std::vector<ExecutionProvider>, LoadFailure> read_providers(
    const inference::ModelConfig& proto) {
  BATON_ASSIGN(const std::optional<int> device, read_device(proto));
  std::optional<Options> tensorrt;
  std::optional<Options> cuda;
  if (device) cuda.emplace();
  const auto& accelerators = proto.optimization().execution_accelerators();
  for (const auto& accelerator : accelerators.gpu_execution_accelerator()) {
    if (accelerator.name() == "tensorrt") {
      tensorrt.emplace();
      for (const auto& [key, value] : accelerator.parameters()) {
        BATON_TRY(add_tensorrt(key, value, *tensorrt));
      }
    } else if (accelerator.name() == "cuda") {
      for (const auto& [key, value] : accelerator.parameters()) {
        if (!cuda) cuda.emplace();
        (*cuda)[key] = in_ort_words(key, value);
      }
    } else {
      return fail(wrong("the GPU accelerator \"" + accelerator.name() +
                        "\" is not offered; tensorrt and cuda are"));
    }
  }
  for (const auto& accelerator : accelerators.cpu_execution_accelerator()) {
    return fail(wrong("the CPU accelerator \"" + accelerator.name() + "\" is not offered"));
  }
  if ((tensorrt || cuda) && !cuda) cuda.emplace();  // what TensorRT does not take stays on the GPU
  if (!cuda) return std::vector<ExecutionProvider>();
  for (const auto& [key, value] : proto.parameters()) {
    if (std::ranges::find(kCudaParameters, key) == kCudaParameters.end()) continue;
    (*cuda)[key] = in_ort_words(key, value.string_value());
  }
  const std::string id = std::to_string(device.value_or(0));
  std::vector<ExecutionProvider> providers;
  if (tensorrt) {
    tensorrt->emplace("device_id", id);
    providers.push_back({ProviderKind::kTensorRt, *std::move(tensorrt)});
  }
  cuda->emplace("device_id", id);
  providers.push_back({ProviderKind::kCuda, *std::move(cuda)});
  return providers;
}

}  // namespace baton::protocol::model_config
