#include "service/fleet/tensorrt_profiles.h"

#include <gtest/gtest.h>

namespace baton::service {
namespace {

ModelConfig recogniser() {
  ModelConfig config;
  config.max_batch_size = 8;
  config.batching.preferred_sizes = {2, 4};
  TensorSpec input;
  input.name = "x";
  input.dims = {3, 48, -1};
  config.inputs = {input};
  config.runtime.providers = {{ProviderKind::kTensorRt, {}}, {ProviderKind::kCuda, {}}};
  for (int64_t width : {320, 160, 640}) {
    WarmupSample sample;
    sample.inputs["x"].dims = {3, 48, width};
    config.warmups.push_back(sample);
  }
  return config;
}

const std::map<std::string, std::string>& options(const ModelConfig& config) {
  return config.runtime.providers.front().options;
}

TEST(TensorRtProfiles, SpanBatchesAndWarmUpSizes) {
  ModelConfig config = recogniser();
  std::string remark;
  add_tensorrt_profiles(config, remark);
  EXPECT_EQ(options(config).at("trt_profile_min_shapes"), "x:1x3x48x160");
  EXPECT_EQ(options(config).at("trt_profile_opt_shapes"), "x:4x3x48x320");
  EXPECT_EQ(options(config).at("trt_profile_max_shapes"), "x:8x3x48x640");
  EXPECT_TRUE(config.runtime.providers.back().options.empty());
  EXPECT_EQ(remark, "");
}

TEST(TensorRtProfiles, AreNotMadeUp) {
  ModelConfig config = recogniser();
  config.warmups.clear();
  std::string remark;
  add_tensorrt_profiles(config, remark);
  EXPECT_TRUE(options(config).empty());
  EXPECT_NE(remark.find("\"x\""), std::string::npos);
}

TEST(TensorRtProfiles, LeaveWhatIsConfiguredOrFixedAlone) {
  ModelConfig configured = recogniser();
  configured.runtime.providers.front().options["trt_profile_min_shapes"] = "x:1x1";
  std::string remark;
  add_tensorrt_profiles(configured, remark);
  EXPECT_EQ(options(configured).size(), 1U);
  ModelConfig fixed = recogniser();
  fixed.max_batch_size = 0;
  fixed.inputs.front().dims = {1, 3, 48, 320};
  add_tensorrt_profiles(fixed, remark);
  EXPECT_TRUE(options(fixed).empty());
  ModelConfig on_cpu = recogniser();
  on_cpu.runtime.providers.clear();
  add_tensorrt_profiles(on_cpu, remark);
  EXPECT_EQ(remark, "");
}

}  // namespace
}  // namespace baton::service
