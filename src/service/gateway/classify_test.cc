#include "service/gateway/classify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/bytes.h"
#include "base/half.h"
#include "service/gateway/fit.h"

namespace baton::service {
namespace {

struct Classify : ::testing::Test {
  Classify() {
    config.max_batch_size = 8;
    config.outputs = {{.name = "y", .type = DataType::kFp32, .dims = {-1}}};
    request.outputs = {{.name = "y", .classification = 2}};
  }
  template <class T>
  void give(DataType type, Shape shape, std::vector<T> values) {
    auto kept = std::make_shared<std::vector<T>>(std::move(values));
    result.outputs = {{"y", type, std::move(shape), std::as_bytes(std::span(*kept))}};
    result.storage.push_back(std::move(kept));
  }
  std::vector<std::string> classes() {
    const uint64_t most = classified_bytes(request, result, config);
    classify_outputs(request, result, config);
    const Tensor& output = result.outputs[0];
    EXPECT_EQ(output.type, DataType::kBytes);
    EXPECT_LE(output.data.size(), most);
    EXPECT_TRUE(is_valid_bytes_tensor(output.data, element_count(output.shape).value()));
    std::vector<std::string> texts;
    for (auto rest = output.data; !rest.empty();) {
      uint32_t length = 0;
      std::memcpy(&length, rest.data(), sizeof length);
      texts.emplace_back(as_chars(rest.subspan(sizeof length, length)));
      rest = rest.subspan(sizeof length + length);
    }
    return texts;
  }

  ModelConfig config;
  InferRequest request;
  InferResult result;
};

using Texts = std::vector<std::string>;

TEST_F(Classify, TakesTheBestOfEachRow) {
  give<float>(DataType::kFp32, {2, 3}, {0.25F, 0.5F, 0.125F, -1, -3, -2});
  EXPECT_EQ(classes(), (Texts{"0.5:1", "0.25:0", "-1:0", "-2:2"}));
  EXPECT_EQ(result.outputs[0].shape, (Shape{2, 2}));
}

TEST_F(Classify, TiesGoByIndexAndNanIsLast) {
  request.outputs[0].classification = 5;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  give<float>(DataType::kFp32, {1, 5}, {nan, 1, inf, 1, nan});
  const Texts found = classes();
  EXPECT_EQ(Texts(found.begin(), found.begin() + 3), (Texts{"inf:2", "1:1", "1:3"}));
  EXPECT_TRUE(found[3].ends_with(":0") && found[4].ends_with(":4"));
}

TEST_F(Classify, MoreThanTheRowIsTheRow) {
  request.outputs[0].classification = UINT32_MAX;
  give<int64_t>(DataType::kInt64, {1, 2}, {std::numeric_limits<int64_t>::min(), 7});
  EXPECT_EQ(classes(), (Texts{"7:1", "-9223372036854775808:0"}));
  EXPECT_EQ(result.outputs[0].shape, (Shape{1, 2}));
}

TEST_F(Classify, LabelsFollowTheIndexAsFarAsThereAreAny) {
  config.outputs[0].labels = std::make_shared<const LabelList>(LabelList{{"cat", ""}, 3});
  request.outputs[0].classification = 3;
  give<uint8_t>(DataType::kUint8, {1, 3}, {9, 255, 8});
  EXPECT_EQ(classes(), (Texts{"255:1", "9:0:cat", "8:2"}));
}

TEST_F(Classify, AModelThatDoesNotBatchIsOneRow) {
  config.max_batch_size = 0;
  give<double>(DataType::kFp64, {2, 2}, {0.1, 0.3, 0.2, 0});
  EXPECT_EQ(classes(), (Texts{"0.3:1", "0.2:2"}));
  EXPECT_EQ(result.outputs[0].shape, (Shape{2}));
}

TEST_F(Classify, HalvesAreReadAsNumbers) {
  give<uint16_t>(DataType::kFp16, {1, 2}, {float_to_fp16(1.5F), float_to_fp16(-2)});
  EXPECT_EQ(classes(), (Texts{"1.5:0", "-2:1"}));
  give<uint16_t>(DataType::kBf16, {1, 2}, {float_to_bf16(0.5F), float_to_bf16(2)});
  EXPECT_EQ(classes(), (Texts{"2:1", "0.5:0"}));
}

TEST_F(Classify, EmptyRowsAreEmpty) {
  give<float>(DataType::kFp32, {2, 0}, {});
  EXPECT_EQ(classes(), Texts{});
  EXPECT_EQ(result.outputs[0].shape, (Shape{2, 0}));
}

TEST_F(Classify, OtherOutputsStayAsTheyAre) {
  give<float>(DataType::kFp32, {1, 1}, {4});
  result.outputs.push_back(result.outputs[0]);
  result.outputs[1].name = "z";
  request.outputs.push_back({.name = "z"});
  EXPECT_EQ(classes(), Texts{"4:0"});
  EXPECT_EQ(result.outputs[1].type, DataType::kFp32);
}

TEST_F(Classify, TextsAndFlagsAreRefusedBeforeTheRun) {
  config.max_batch_size = 0;
  for (DataType type : {DataType::kBytes, DataType::kBool}) {
    config.outputs[0].type = type;
    const auto fitted = fit_to_model(request, config);
    ASSERT_FALSE(fitted.has_value());
    EXPECT_EQ(fitted.error().reason, EndReason::kInvalid);
    EXPECT_NE(fitted.error().message.find("classification"), std::string::npos);
  }
}

}  // namespace
}  // namespace baton::service
