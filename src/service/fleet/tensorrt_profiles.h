#pragma once

#include "domain/model.h"

namespace baton::service {

// Adds to a TensorRT provider the shapes that its engine is to be built for: rows from 1 to the
// largest batch, best for the preferred one, and open dimensions as in the warm-up samples. Without
// them the engine is built again, for minutes, whenever a request leaves the shapes seen so far
// (onnxruntime#12120). Nothing is added when a profile is configured already, when no dimension is
// open, or when an open one is in no sample; then `remark` says so.
void add_tensorrt_profiles(ModelConfig& config, std::string& remark);

}  // namespace baton::service
