#include "service/sequences/sequence_keeper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"

namespace baton::service {
namespace {

SequenceKeeperOptions options() {
  SequenceKeeperOptions made;
  made.config.name = "m";
  made.config.max_batch_size = 2;
  made.config.inputs = {{.name = "x", .type = DataType::kInt32, .dims = {1}}};
  made.config.outputs = {{.name = "y", .type = DataType::kInt32, .dims = {1}}};
  SequenceConfig& sequences = made.config.sequences.emplace();
  sequences.controls = {{.kind = SequenceControl::Kind::kStart,
                         .input = "start",
                         .type = DataType::kInt32,
                         .off = value_bytes(int32_t{0}),
                         .on = value_bytes(int32_t{1})},
                        {.kind = SequenceControl::Kind::kCorrelationId,
                         .input = "id",
                         .type = DataType::kUint64,
                         .dims = {}}};
  sequences.states = {
      {.input = "s",
       .output = "t",
       .type = DataType::kInt32,
       .dims = {-1},
       .first = {.dims = {1}},
       .first_bytes = std::make_shared<const std::string>(value_bytes(int32_t{40}))}};
  return made;
}

std::shared_ptr<InferRequest> request(uint64_t id, bool start = false, bool end = false) {
  auto made = std::make_shared<InferRequest>();
  made->model = "m";
  made->sequence = {.id = {.number = id}, .start = start, .end = end};
  auto data = std::make_shared<const std::string>(value_bytes(int32_t{1}));
  made->inputs = {{.name = "x",
                   .type = DataType::kInt32,
                   .shape = {1, 1},
                   .data = std::as_bytes(std::span(*data))}};
  made->storage = {data};
  return made;
}

int32_t number_in(const InferRequest& whole, std::string_view input) {
  const auto tensor = std::ranges::find(whole.inputs, input, &Tensor::name);
  int32_t value = -1;
  if (tensor != whole.inputs.end()) std::memcpy(&value, tensor->data.data(), sizeof value);
  return value;
}

// An answer with the state `values`.
InferResult answer(std::vector<int32_t> values) {
  auto data = std::make_shared<const std::vector<int32_t>>(std::move(values));
  InferResult made;
  const Shape shape = {1, static_cast<int64_t>(data->size())};
  for (const char* name : {"y", "t"}) {
    made.outputs.push_back({.name = name,
                            .type = DataType::kInt32,
                            .shape = shape,
                            .data = std::as_bytes(std::span(*data))});
  }
  made.storage = {data};
  return made;
}

TEST(SequenceKeeper, GivesTheRuntimeControlsAndTheStateOfTheStepBefore) {
  SequenceKeeper keeper(options());
  ports::SequenceTurn turn;
  ASSERT_FALSE(keeper.arrive(1, request(7, true), Instant(), turn));
  ASSERT_FALSE(keeper.arrive(2, request(7), Instant(), turn));
  ASSERT_EQ(turn.run.size(), 1U);
  const InferRequest& first = *turn.run[0].request;
  EXPECT_EQ(number_in(first, "start"), 1);
  EXPECT_EQ(number_in(first, "id"), 7);
  EXPECT_EQ(number_in(first, "s"), 40);
  EXPECT_EQ(first.inputs[1].shape, (Shape{1, 1}));
  EXPECT_EQ(first.inputs[2].shape, Shape{1});  // as the file has it: one number a row
  ASSERT_EQ(first.outputs.size(), 2U);
  EXPECT_EQ(first.outputs[1].name, "t");
  InferResult result = answer({41, 42});
  turn = {};
  ASSERT_FALSE(keeper.ended(1, &result, Instant(), turn));
  ASSERT_EQ(result.outputs.size(), 1U);
  EXPECT_EQ(result.outputs[0].name, "y");
  EXPECT_EQ(keeper.stats().state_bytes, 8U);
  ASSERT_EQ(turn.run.size(), 1U);
  EXPECT_EQ(number_in(*turn.run[0].request, "s"), 41);
  EXPECT_EQ(number_in(*turn.run[0].request, "start"), 0);
  EXPECT_EQ(turn.run[0].request->inputs.back().shape, (Shape{1, 2}));
}

TEST(SequenceKeeper, ShowsAStateToWhoeverAsksForItWhereItIsAnOutput) {
  SequenceKeeperOptions shown = options();
  shown.config.outputs.push_back({.name = "t", .type = DataType::kInt32, .dims = {-1}});
  SequenceKeeper keeper(std::move(shown));
  ports::SequenceTurn turn;
  auto one = request(1, true, true);
  one->outputs = {{.name = "t"}};
  ASSERT_FALSE(keeper.arrive(1, one, Instant(), turn));
  EXPECT_EQ(turn.run[0].request->outputs.size(), 1U);
  InferResult result = answer({1});
  result.outputs.erase(result.outputs.begin());
  ASSERT_FALSE(keeper.ended(1, &result, Instant(), turn));
  EXPECT_EQ(result.outputs.size(), 1U);
  EXPECT_EQ(keeper.stats().state_bytes, 0U);
  EXPECT_EQ(keeper.stats().live, 0U);
}

TEST(SequenceKeeper, KeepsTheStateWhenAStepFailsAndTellsThoseBehindIt) {
  SequenceKeeper keeper(options());
  ports::SequenceTurn turn;
  static_cast<void>(keeper.arrive(1, request(7, true), Instant(), turn));
  InferResult result = answer({50});
  static_cast<void>(keeper.ended(1, &result, Instant(), turn));
  static_cast<void>(keeper.arrive(2, request(7), Instant(), turn));
  static_cast<void>(keeper.arrive(3, request(7), Instant(), turn));
  turn = {};
  EXPECT_FALSE(keeper.ended(2, nullptr, Instant(), turn));
  ASSERT_EQ(turn.lost.size(), 1U);
  EXPECT_EQ(turn.lost[0].step, 3U);
  EXPECT_NE(turn.lost[0].refusal.message.find("sequence 7"), std::string::npos);
  EXPECT_EQ(keeper.stats().lost_steps, 1U);
  static_cast<void>(keeper.arrive(4, request(7), Instant(), turn));
  EXPECT_EQ(number_in(*turn.run.back().request, "s"), 50);
}

TEST(SequenceKeeper, FailsAStepWhoseStateIsNotAsConfigured) {
  SequenceKeeper keeper(options());
  ports::SequenceTurn turn;
  static_cast<void>(keeper.arrive(1, request(7, true), Instant(), turn));
  InferResult wrong = answer({1});
  wrong.outputs[1].type = DataType::kFp32;
  const auto refusal = keeper.ended(1, &wrong, Instant(), turn);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->reason, EndReason::kEngineFailed);
  EXPECT_NE(refusal->message.find("\"t\""), std::string::npos);
  EXPECT_EQ(keeper.stats().live, 0U);  // its beginning failed
}

TEST(SequenceKeeper, BoundsTheBytesOfStates) {
  SequenceKeeperOptions bounded = options();
  bounded.state_bytes_max = 10;
  SequenceKeeper keeper(std::move(bounded));
  ports::SequenceTurn turn;
  for (const ports::StepNumber step : {1U, 2U}) {
    static_cast<void>(keeper.arrive(step, request(step, true), Instant(), turn));
  }
  InferResult fits = answer({1, 2});
  EXPECT_FALSE(keeper.ended(1, &fits, Instant(), turn));
  InferResult beyond = answer({1});
  const auto refusal = keeper.ended(2, &beyond, Instant(), turn);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->reason, EndReason::kOverloaded);
  EXPECT_EQ(keeper.stats().state_bytes, 8U);
  turn = {};
  static_cast<void>(keeper.expire(Instant::from_ns(2'000'000'000), turn));
  EXPECT_EQ(keeper.stats().state_bytes, 0U);
  EXPECT_EQ(turn.freed.size(), 1U);
}

TEST(SequenceKeeper, LetsAllBeginWhenTheEndIsNear) {
  SequenceKeeper keeper(options());  // two rows: two sequences
  ports::SequenceTurn turn;
  for (const ports::StepNumber step : {1U, 2U, 3U, 4U}) {
    static_cast<void>(keeper.arrive(step, request(step, true), Instant(), turn));
  }
  EXPECT_EQ(turn.run.size(), 2U);
  keeper.set_instances(2, Instant(), turn);
  EXPECT_EQ(turn.run.size(), 4U);
  static_cast<void>(keeper.arrive(5, request(5, true), Instant(), turn));
  EXPECT_EQ(turn.run.size(), 4U);
  keeper.let_all_begin(Instant(), turn);
  EXPECT_EQ(turn.run.size(), 5U);
  keeper.stop_accepting(turn);
  const auto refusal = keeper.arrive(6, request(6, true), Instant(), turn);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->reason, EndReason::kShuttingDown);
}

}  // namespace
}  // namespace baton::service
