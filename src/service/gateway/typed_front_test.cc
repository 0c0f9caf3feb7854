#include "service/gateway/typed_front.h"

#include <gtest/gtest.h>

#include <array>

#include "ports/testing/fixed_directory.h"
#include "ports/testing/scripted_engine.h"
#include "ports/testing/virtual_loop.h"

namespace baton::service {
namespace {

class Lines final : public ports::LogSink {
 public:
  void write(std::string_view line) override { last = line; }
  std::string last;
};

class TypedFrontTest : public testing::Test {
 protected:
  void SetUp() override {
    auto version = std::make_shared<ports::ModelVersion>();
    version->model = "m";
    version->version = 1;
    version->state = ModelState::kReady;
    version->config.name = "m";
    version->config.inputs = {{.name = "x", .type = DataType::kFp32, .dims = {2}}};
    version->config.outputs = {{.name = "y", .type = DataType::kFp32, .dims = {2}}};
    version->engine = engine_;
    version->metrics_slot = *telemetry_.slot_for("m", 1);
    auto entry = std::make_shared<ports::ModelEntry>();
    entry->name = "m";
    entry->versions[1] = version;
    directory_.current.models["m"] = entry;
    ++directory_.number;
  }

  void infer_and_answer() {
    auto request = std::make_shared<InferRequest>();
    request->context.arrival = loop_.now();
    request->model = "m";
    request->inputs = {{"x", DataType::kFp32, {2}, std::as_bytes(std::span(numbers_))}};
    front_.infer({}, request, [this](auto answer) { answers_.push_back(std::move(answer)); });
    ports::EngineEnd end;
    end.result.outputs = {{"y", DataType::kFp32, {2}, std::as_bytes(std::span(numbers_))}};
    engine_->end_first(std::move(end));
    loop_.run_for(Duration());
  }

  std::array<float, 2> numbers_{};
  ports::testing::VirtualLoop loop_;
  ports::testing::FixedDirectory directory_;
  Telemetry telemetry_{1};
  Lines lines_;
  AccessLog access_log_{loop_, &lines_};
  ByteBudget budget_{20};
  std::shared_ptr<ports::testing::ScriptedEngine> engine_ =
      std::make_shared<ports::testing::ScriptedEngine>();
  Gateway gateway_{
      GatewayPorts{loop_, loop_, loop_, directory_, telemetry_, access_log_, nullptr, &budget_},
      {}};
  TypedFront front_{gateway_, nullptr};
  std::vector<Result<ports::InferAnswer, Refusal>> answers_;
};

TEST_F(TypedFrontTest, AnswersThatWaitForTheirClientsAreBounded) {
  for (int i = 0; i < 3; ++i) infer_and_answer();  // of 8 bytes each
  EXPECT_TRUE(answers_[0].has_value() && answers_[1].has_value());
  ASSERT_FALSE(answers_[2].has_value());
  EXPECT_EQ(answers_[2].error().reason, EndReason::kOverloaded);
  answers_.clear();  // the clients have taken them
  EXPECT_EQ(budget_.used(), 0U);
  infer_and_answer();
  EXPECT_TRUE(answers_[0].has_value());
}

TEST_F(TypedFrontTest, LogsWhoseTheRefusedCallWas) {
  const AccessControl access({{"k", "alice"}});
  TypedFront front(gateway_, &access);
  RequestContext context;
  context.client_id = "r-1";
  context.tenant = "mallory";  // said by the client, who has a key
  front.count_refused({"Bearer k", "127.0.0.1"}, context, "m", {EndReason::kInvalid, "no", {}});
  EXPECT_NE(lines_.last.find(R"("client_id":"r-1")"), std::string::npos) << lines_.last;
  EXPECT_NE(lines_.last.find(R"("tenant":"alice")"), std::string::npos) << lines_.last;
  EXPECT_EQ(telemetry_.cells(0).refused[static_cast<size_t>(EndReason::kInvalid)].value(), 1U);
}

}  // namespace
}  // namespace baton::service
