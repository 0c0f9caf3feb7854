#include "protocol/model_config/data_types.h"

#include <array>
#include <utility>

namespace baton::protocol::model_config {
namespace {

constexpr std::array<std::pair<inference::DataType, DataType>, kDataTypeCount> kTypes = {
    {{inference::TYPE_BOOL, DataType::kBool},
     {inference::TYPE_UINT8, DataType::kUint8},
     {inference::TYPE_UINT16, DataType::kUint16},
     {inference::TYPE_UINT32, DataType::kUint32},
     {inference::TYPE_UINT64, DataType::kUint64},
     {inference::TYPE_INT8, DataType::kInt8},
     {inference::TYPE_INT16, DataType::kInt16},
     {inference::TYPE_INT32, DataType::kInt32},
     {inference::TYPE_INT64, DataType::kInt64},
     {inference::TYPE_FP16, DataType::kFp16},
     {inference::TYPE_BF16, DataType::kBf16},
     {inference::TYPE_FP32, DataType::kFp32},
     {inference::TYPE_FP64, DataType::kFp64},
     {inference::TYPE_STRING, DataType::kBytes}}};

}  // namespace

std::optional<DataType> from_config(inference::DataType type) {
  for (const auto& [config, ours] : kTypes) {
    if (config == type) return ours;
  }
  return std::nullopt;
}

inference::DataType to_config(DataType type) {
  for (const auto& [config, ours] : kTypes) {
    if (ours == type) return config;
  }
  return inference::TYPE_INVALID;
}

}  // namespace baton::protocol::model_config
