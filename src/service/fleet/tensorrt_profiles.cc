#include "service/fleet/tensorrt_profiles.h"

#include <algorithm>
#include <optional>

namespace baton::service {
namespace {

// The smallest, best and largest shape of one input, its batch dimension included.
struct Profile {
  Shape min;
  Shape best;
  Shape max;
  bool open = false;
};

void add_batch(const ModelConfig& config, Profile& profile) {
  if (!config.batches()) return;
  const std::vector<uint32_t>& preferred = config.batching.preferred_sizes;
  const uint32_t best = preferred.empty() ? config.max_batch_size : preferred.back();
  profile.open = profile.open || config.max_batch_size > 1;
  profile.min.push_back(1);
  profile.best.push_back(best);
  profile.max.push_back(config.max_batch_size);
}

// Nothing when an open dimension is in no warm-up sample.
std::optional<Profile> profile_of(const ModelConfig& config, const TensorSpec& input) {
  Profile profile;
  add_batch(config, profile);
  // The configuration's dims have no batch dimension yet.
  for (size_t i = 0; i < input.dims.size(); ++i) {
    int64_t low = input.dims[i];
    int64_t high = input.dims[i];
    int64_t first = input.dims[i];
    if (input.dims[i] < 0) {
      profile.open = true;
      for (const WarmupSample& sample : config.warmups) {
        const auto found = sample.inputs.find(input.name);
        if (found == sample.inputs.end() || found->second.dims.size() != input.dims.size())
          continue;
        const int64_t dim = found->second.dims[i];
        if (low < 0) low = high = first = dim;
        low = std::min(low, dim);
        high = std::max(high, dim);
      }
      if (low < 0) return std::nullopt;
    }
    profile.min.push_back(low);
    profile.best.push_back(first);
    profile.max.push_back(high);
  }
  return profile;
}

// "x:1x3x48x32"
void append(std::string& text, const std::string& name, const Shape& shape) {
  if (!text.empty()) text += ',';
  text += name;
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? ':' : 'x') + std::to_string(shape[i]);
}

}  // namespace

void add_tensorrt_profiles(ModelConfig& config, std::string& remark) {
  auto& providers = config.runtime.providers;
  const auto tensorrt =
      std::ranges::find(providers, ProviderKind::kTensorRt, &ExecutionProvider::kind);
  if (tensorrt == providers.end() || tensorrt->options.contains("trt_profile_min_shapes")) return;
  std::string min;
  std::string best;
  std::string max;
  bool open = false;
  for (const TensorSpec& input : config.inputs) {
    const auto profile = profile_of(config, input);
    if (!profile) {
      remark = "TensorRT gets no profile: input \"" + input.name +
               "\" has an open dimension that no model_warmup sample gives";
      return;
    }
    open = open || profile->open;
    append(min, input.name, profile->min);
    append(best, input.name, profile->best);
    append(max, input.name, profile->max);
  }
  if (!open || min.empty()) return;
  tensorrt->options["trt_profile_min_shapes"] = min;
  tensorrt->options["trt_profile_opt_shapes"] = best;
  tensorrt->options["trt_profile_max_shapes"] = max;
}

}  // namespace baton::service
