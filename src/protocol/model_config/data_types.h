#pragma once
// The data types of config.pbtxt. For the files of this room only: includes the generated header.

#include <optional>

#include "baton_inference.pb.h"
#include "domain/data_type.h"

namespace baton::protocol::model_config {

[[nodiscard]] std::optional<DataType> from_config(inference::DataType type);
[[nodiscard]] inference::DataType to_config(DataType type);

}  // namespace baton::protocol::model_config
