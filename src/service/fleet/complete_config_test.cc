#include "service/fleet/complete_config.h"

#include <gtest/gtest.h>

namespace baton::service {
namespace {

TensorSpec spec(std::string name, Shape dims, DataType type = DataType::kFp32) {
  TensorSpec out;
  out.name = std::move(name);
  out.dims = std::move(dims);
  out.type = type;
  return out;
}

ModelSignature image_model() {
  return {{spec("x", {-1, 3, 8, 8})}, {spec("y", {-1, 2})}};
}

TEST(CompleteConfig, TakesOverWhatIsNotNamed) {
  ModelConfig config;
  config.max_batch_size = 4;
  const auto complete = complete_config(config, image_model());
  ASSERT_TRUE(complete.has_value());
  EXPECT_EQ(complete->inputs[0].dims, (Shape{3, 8, 8}));
  EXPECT_EQ(complete->outputs[0].dims, (Shape{2}));
}

TEST(CompleteConfig, AFixedFirstDimensionCannotBatch) {  // U142, server#5334
  ModelConfig config;
  config.max_batch_size = 8;
  const auto complete =
      complete_config(config, {{spec("x", {1, 3, 512, 512})}, {spec("y", {1, 2})}});
  ASSERT_FALSE(complete.has_value());
  EXPECT_EQ(complete.error().message,
            "input \"x\": max_batch_size is 8, so the model's first dimension must be -1; it has "
            "shape [1,3,512,512]");
}

TEST(CompleteConfig, NamesTheTensorWhatWasFoundAndExpected) {
  ModelConfig config;
  config.inputs = {spec("x", {3, 8, 8})};  // dims without the batch dimension though it is 0
  auto complete = complete_config(config, image_model());
  ASSERT_FALSE(complete.has_value());
  EXPECT_EQ(complete.error().message,
            "input \"x\": the configuration expects shape [3,8,8], the model has [-1,3,8,8]");
  config.inputs = {spec("x", {-1, 3, 8, 8}, DataType::kInt32)};
  complete = complete_config(config, image_model());
  EXPECT_EQ(complete.error().message,
            "input \"x\": the configuration says INT32, the model has FP32");
  config.inputs = {spec("z", {1})};
  complete = complete_config(config, image_model());
  EXPECT_EQ(complete.error().message, "the model has no input \"z\"");
}

TEST(CompleteConfig, NamedOutputsAreAChoice) {
  ModelConfig config;
  config.outputs = {spec("b", {2})};
  const auto complete =
      complete_config(config, {{spec("x", {2})}, {spec("a", {1}), spec("b", {2})}});
  ASSERT_TRUE(complete.has_value());
  EXPECT_EQ(complete->outputs.size(), 1U);
}

TEST(CompleteConfig, ReshapeIsWhatTheModelSees) {
  ModelConfig config;
  config.max_batch_size = 2;
  TensorSpec input = spec("x", {1});
  input.reshape = Shape{};
  config.inputs = {input};
  EXPECT_TRUE(complete_config(config, {{spec("x", {-1})}, {spec("y", {-1})}}).has_value());
}

TEST(DeriveConfig, BatchesOnlyWhereTheFirstDimensionAllowsIt) {
  EXPECT_EQ(derive_config("m", image_model()).max_batch_size, kDerivedMaxBatch);
  EXPECT_EQ(derive_config("m", {{spec("x", {1, 3})}, {spec("y", {-1})}}).max_batch_size, 0U);
  EXPECT_EQ(derive_config("m", {{spec("x", {-1})}, {spec("y", {-1})}}).max_batch_size, 0U);
  EXPECT_EQ(derive_config("m", {{spec("x", {})}, {spec("y", {})}}).max_batch_size, 0U);
}

TEST(HasSteadyRuns, AskForFixedShapesAndNoControlFlow) {
  ModelConfig config;
  config.max_batch_size = 4;
  ModelSignature signature = image_model();
  EXPECT_TRUE(has_steady_runs(config, signature));
  signature.control_flow = true;
  EXPECT_FALSE(has_steady_runs(config, signature));
  EXPECT_FALSE(has_steady_runs(config, {{spec("x", {-1, -1})}, {}}));
  EXPECT_FALSE(has_steady_runs(config, {{spec("x", {-1, 1}, DataType::kBytes)}, {}}));
  config.max_batch_size = 0;
  EXPECT_FALSE(has_steady_runs(config, image_model()));
}

TEST(CompleteConfig, AnInputWithADefaultIsOptionalAndNotTakenOver) {
  TensorSpec scale = spec("scale", {1});
  scale.optional = true;
  const ModelSignature signature = {{spec("x", {2}), scale}, {spec("y", {2})}};
  const auto plain = complete_config({}, signature);
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->inputs.size(), 1U);
  ModelConfig named;
  named.inputs = {spec("scale", {1})};
  const auto complete = complete_config(named, signature);
  ASSERT_TRUE(complete.has_value());
  EXPECT_EQ(complete->inputs.size(), 2U);
  EXPECT_EQ(derive_config("m", signature).inputs.size(), 1U);
}

}  // namespace
}  // namespace baton::service
