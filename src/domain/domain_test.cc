#include <gtest/gtest.h>

#include <cstring>

#include "domain/data_type.h"
#include "domain/decision.h"
#include "domain/end_reason.h"
#include "domain/latency_curve.h"
#include "domain/model.h"
#include "domain/request.h"
#include "domain/request_parameters.h"

namespace baton {
namespace {

TEST(DataType, EveryNameReadsBack) {
  for (int i = 0; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(parse_data_type(data_type_name(type)), type);
  }
  EXPECT_FALSE(parse_data_type("FP8").has_value());
}

TEST(ElementCount, RefusesNegativeAndOverflowingShapes) {
  EXPECT_EQ(element_count(Shape{2, 3}), 6U);
  EXPECT_EQ(element_count(Shape{}), 1U);
  EXPECT_EQ(element_count(Shape{1LL << 62, 0}), std::nullopt);
  EXPECT_EQ(element_count(Shape{5, 0}), 0U);
  EXPECT_EQ(element_count(Shape{-1}), std::nullopt);
  EXPECT_EQ(element_count(Shape{1LL << 32, 1LL << 32}), std::nullopt);
}

TEST(BytesTensor, LengthsMustFillTheDataExactly) {
  const char data[] = "\2\0\0\0ab\0\0\0\0";
  const auto bytes = std::as_bytes(std::span(data, 10));
  EXPECT_TRUE(is_valid_bytes_tensor(bytes, 2));
  EXPECT_FALSE(is_valid_bytes_tensor(bytes, 1));
  EXPECT_FALSE(is_valid_bytes_tensor(bytes, 3));
  const char overflow[] = "\xff\xff\xff\xff";
  EXPECT_FALSE(is_valid_bytes_tensor(std::as_bytes(std::span(overflow, 4)), 1));
}

TEST(LatencyCurve, InterpolatesAndExtrapolates) {
  const LatencyCurve curve({{1, Duration::us(100), 1}, {4, Duration::us(130), 1}});
  EXPECT_EQ(curve.predict(1), Duration::us(100));
  EXPECT_EQ(curve.predict(2), Duration::us(110));
  EXPECT_EQ(curve.predict(7), Duration::us(160));
  EXPECT_EQ(LatencyCurve().predict(3), Duration());
}

TEST(LatencyCurve, APredictionIsNeverSoLongThatSumsOverflow) {
  const Duration year = Duration::s(365 * 86'400);
  const LatencyCurve one({{1, Duration::s(86'400), 1}});
  EXPECT_EQ(one.predict(2), Duration::s(2 * 86'400));
  EXPECT_EQ(one.predict(UINT64_MAX), year);
  const LatencyCurve two({{1, Duration::ns(1), 1}, {2, Duration::s(86'400), 1}});
  EXPECT_EQ(two.predict(UINT64_MAX), year + Duration::ns(1));
}

TEST(LatencyCurve, PointsFromOutsideAreACurveOrNot) {
  const Duration us = Duration::us(1);
  const auto is = [](std::vector<CurvePoint> points) { return is_curve(points); };
  EXPECT_TRUE(is({{1, us, 1}, {4, us, 0}, {8, us * 2, 1}}));
  EXPECT_FALSE(is({}));
  EXPECT_FALSE(is({{0, us, 1}}));
  EXPECT_FALSE(is({{4, us, 1}, {1, us * 2, 1}}));
  EXPECT_FALSE(is({{1, us, 1}, {1, us, 1}}));
  EXPECT_FALSE(is({{1, us * 2, 1}, {4, us, 1}}));
  EXPECT_FALSE(is({{1, us * -1, 1}}));
  EXPECT_FALSE(is({{1, Duration(), 1}}));
  EXPECT_FALSE(is({{1, Duration::s(100'000), 1}}));
  std::vector<CurvePoint> many;
  for (uint32_t size = 1; size <= kMostCurvePoints; ++size) many.push_back({size, us, 1});
  EXPECT_TRUE(is(many));
  many.push_back({1000, us, 1});
  EXPECT_FALSE(is(many));
}

TEST(SameLayout, IgnoresTheBatchDimensionOnlyWhenBatched) {
  InferRequest a, b;
  a.inputs.push_back({"x", DataType::kFp32, {1, 8}, {}});
  b.inputs.push_back({"x", DataType::kFp32, {2, 8}, {}});
  EXPECT_TRUE(same_layout(a, b, true));
  EXPECT_FALSE(same_layout(a, b, false));
  EXPECT_EQ(layout_hash(a, true), layout_hash(b, true));
  EXPECT_NE(layout_hash(a, false), layout_hash(b, false));
}

TEST(Names, AreDefinedForTheWholeList) {
  for (int i = 0; i < kEndReasonCount; ++i) {
    const auto reason = static_cast<EndReason>(i);
    EXPECT_EQ(parse_end_reason(end_reason_name(reason)), reason);
  }
  EXPECT_EQ(parse_end_reason("nope"), std::nullopt);
  for (int i = 0; i < kDecisionKindCount; ++i) {
    EXPECT_FALSE(decision_kind_name(static_cast<DecisionKind>(i)).empty());
    EXPECT_FALSE(decision_kind_meaning(static_cast<DecisionKind>(i)).empty());
  }
  for (int i = 0; i < kDecisionReasonCount; ++i) {
    EXPECT_FALSE(decision_reason_name(static_cast<DecisionReason>(i)).empty());
    EXPECT_FALSE(decision_reason_meaning(static_cast<DecisionReason>(i)).empty());
  }
  for (int i = 0; i < kInputKindCount; ++i) {
    const auto kind = static_cast<InputKind>(i);
    EXPECT_EQ(parse_input_kind(input_kind_name(kind)), kind);
    EXPECT_FALSE(input_kind_meaning(kind).empty());
  }
  EXPECT_EQ(parse_run_outcome("failed"), RunOutcome::kFailed);
  EXPECT_EQ(decision_reason_name(DecisionReason::kRunTerminated), "run_terminated");
  EXPECT_EQ(decision_reason_name(DecisionReason::kTrial), "trial");
  EXPECT_EQ(end_reason_name(EndReason::kEngineFailed), "engine_failed");
  EXPECT_EQ(decision_reason_name(DecisionReason::kRunEnded), "run_ended");
}

TEST(RuntimeShape, PutsTheReshapeInPlaceOfTheDims) {
  TensorSpec spec;
  spec.dims = {1};
  spec.reshape = Shape{};
  EXPECT_EQ(runtime_shape(spec, {4, 1}, true), (Shape{4}));
  EXPECT_EQ(client_shape(spec, {4}, true), (Shape{4, 1}));
  spec.dims = {-1, 3};
  spec.reshape = Shape{3, -1};
  EXPECT_EQ(runtime_shape(spec, {2, 7, 3}, true), (Shape{2, 3, 7}));
  EXPECT_EQ(client_shape(spec, {3, 7}, false), (Shape{7, 3}));
  spec.reshape.reset();
  EXPECT_EQ(runtime_shape(spec, {7, 3}, false), (Shape{7, 3}));
}

TEST(RequestParameters, SaysWhichThereAre) {
  EXPECT_EQ(request_parameter("timeout"), RequestParameter::kTimeout);
  EXPECT_EQ(request_parameter("sequence_end"), RequestParameter::kSequenceEnd);
  // Sent by clients of streams: without effect where a call has one answer.
  EXPECT_EQ(request_parameter("triton_enable_empty_final_response"), RequestParameter::kOnlyStream);
  EXPECT_EQ(request_parameter("triton_x"), RequestParameter::kReserved);
  EXPECT_EQ(request_parameter("mine"), RequestParameter::kUnknown);
}

TEST(RequestParameters, ATimeoutOnlyShortensTheDeadline) {
  RequestContext context;
  context.arrival = Instant::from_ns(1'000);
  context.deadline = context.arrival + Duration::ms(5);
  ASSERT_TRUE(apply_parameters({.timeout_us = 9'000, .priority = 2}, context).has_value());
  EXPECT_EQ(context.deadline, context.arrival + Duration::ms(5));
  EXPECT_EQ(context.priority, 2U);
  ASSERT_TRUE(apply_parameters({.timeout_us = 0, .priority = {}}, context).has_value());
  EXPECT_EQ(context.deadline, context.arrival + Duration::ms(5));
  ASSERT_TRUE(apply_parameters({.timeout_us = 1'000, .priority = {}}, context).has_value());
  EXPECT_EQ(context.deadline, context.arrival + Duration::ms(1));
}

TEST(RequestParameters, RefusesWhatIsTooLarge) {
  RequestContext context;
  EXPECT_TRUE(apply_parameters({.timeout_us = 86'400'000'000, .priority = UINT32_MAX}, context));
  EXPECT_FALSE(apply_parameters({.timeout_us = 86'400'000'001, .priority = {}}, context));
  EXPECT_FALSE(apply_parameters({.timeout_us = {}, .priority = 1ULL << 32}, context));
}

}  // namespace
}  // namespace baton
