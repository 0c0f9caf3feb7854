#include "adapters/onnx/ort_runtime.h"

namespace baton::adapters::onnx {
namespace {

struct Side {
  const char* word;
  OrtStatus* (*count)(const OrtSession*, size_t*);
  OrtStatus* (*name)(const OrtSession*, size_t, OrtAllocator*, char**);
  OrtStatus* (*type)(const OrtSession*, size_t, OrtTypeInfo**);
};

LoadFailure unreadable(const std::string& error) {
  return {"its inputs and outputs cannot be read", error};
}

Result<TensorSpec, LoadFailure> read_tensor(const OrtApi& api, OrtSession* session,
                                            const Side& side, size_t index) {
  std::string error;
  OrtAllocator* allocator = nullptr;
  if (!ort_ok(api, api.GetAllocatorWithDefaultOptions(&allocator), error)) {
    return fail(unreadable(error));
  }
  TensorSpec spec;
  char* name = nullptr;
  if (!ort_ok(api, side.name(session, index, allocator, &name), error)) {
    return fail(unreadable(error));
  }
  spec.name = name;
  if (!ort_ok(api, api.AllocatorFree(allocator, name), error)) return fail(unreadable(error));
  auto info = ort_make<OrtTypeInfo>(
      api, api.ReleaseTypeInfo, [&](OrtTypeInfo** out) { return side.type(session, index, out); },
      error);
  if (!info) return fail(unreadable(error));
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  if (!ort_ok(api, api.CastTypeInfoToTensorInfo(info.get(), &tensor), error) || tensor == nullptr) {
    return fail(LoadFailure{std::string(side.word) + " \"" + spec.name +
                            "\" is not a tensor; only tensors are served"});
  }
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t rank = 0;
  if (!ort_ok(api, api.GetTensorElementType(tensor, &element), error) ||
      !ort_ok(api, api.GetDimensionsCount(tensor, &rank), error)) {
    return fail(unreadable(error));
  }
  const auto type = from_onnx(element);
  if (!type) {
    return fail(LoadFailure{std::string(side.word) + " \"" + spec.name +
                            "\" has ONNX element type " + std::to_string(element) +
                            ", which the protocol does not have"});
  }
  spec.type = *type;
  spec.dims.resize(rank);
  if (!ort_ok(api, api.GetDimensions(tensor, spec.dims.data(), rank), error)) {
    return fail(unreadable(error));
  }
  for (int64_t& dim : spec.dims) {
    if (dim < 0) dim = -1;
  }
  return spec;
}

Result<std::vector<TensorSpec>, LoadFailure> read_side(const OrtApi& api, OrtSession* session,
                                                       const Side& side) {
  std::string error;
  size_t count = 0;
  if (!ort_ok(api, side.count(session, &count), error)) return fail(unreadable(error));
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < count; ++i) {
    BATON_ASSIGN(TensorSpec spec, read_tensor(api, session, side, i));
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace

Result<ModelSignature, LoadFailure> read_signature(const OrtApi& api, OrtSession* session) {
  const Side inputs{"input", api.SessionGetInputCount, api.SessionGetInputName,
                    api.SessionGetInputTypeInfo};
  const Side outputs{"output", api.SessionGetOutputCount, api.SessionGetOutputName,
                     api.SessionGetOutputTypeInfo};
  ModelSignature signature;
  BATON_ASSIGN(signature.inputs, read_side(api, session, inputs));
  BATON_ASSIGN(signature.outputs, read_side(api, session, outputs));
  // Inputs with a default in the file; one that is not a tensor can only keep its default.
  const Side defaults{"input", api.SessionGetOverridableInitializerCount,
                      api.SessionGetOverridableInitializerName,
                      api.SessionGetOverridableInitializerTypeInfo};
  if (auto optional = read_side(api, session, defaults); optional.has_value()) {
    for (TensorSpec& spec : *optional) {
      spec.optional = true;
      signature.inputs.push_back(std::move(spec));
    }
  }
  return signature;
}

}  // namespace baton::adapters::onnx
