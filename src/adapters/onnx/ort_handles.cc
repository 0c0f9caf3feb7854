#include "adapters/onnx/ort_handles.h"

#include <array>
#include <utility>

namespace baton::adapters::onnx {
namespace {

constexpr std::array<std::pair<ONNXTensorElementDataType, DataType>, kDataTypeCount> kTypes = {
    {{ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, DataType::kBool},
     {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, DataType::kUint8},
     {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, DataType::kUint16},
     {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, DataType::kUint32},
     {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, DataType::kUint64},
     {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, DataType::kInt8},
     {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, DataType::kInt16},
     {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, DataType::kInt32},
     {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, DataType::kInt64},
     {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, DataType::kFp16},
     {ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, DataType::kBf16},
     {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, DataType::kFp32},
     {ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, DataType::kFp64},
     {ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, DataType::kBytes}}};

}  // namespace

std::optional<DataType> from_onnx(ONNXTensorElementDataType type) {
  for (const auto& [onnx, ours] : kTypes) {
    if (onnx == type) return ours;
  }
  return std::nullopt;
}

ONNXTensorElementDataType to_onnx(DataType type) {
  for (const auto& [onnx, ours] : kTypes) {
    if (ours == type) return onnx;
  }
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

}  // namespace baton::adapters::onnx
