#include "service/gateway/gateway.h"

#include <gtest/gtest.h>

#include <array>

#include "ports/testing/fixed_directory.h"
#include "ports/testing/scripted_engine.h"
#include "ports/testing/virtual_loop.h"
#include "service/gateway/fit.h"

namespace baton::service {
namespace {

using ports::testing::FixedDirectory;
using ports::testing::ScriptedEngine;
using ports::testing::VirtualLoop;

class Lines final : public ports::LogSink {
 public:
  void write(std::string_view line) override { lines.emplace_back(line); }
  std::vector<std::string> lines;
};

class Decisions final : public ports::DecisionSink {
 public:
  void record(const Decision& decision) override { list.push_back(decision); }
  [[nodiscard]] bool takes_inputs() const override { return true; }
  void input(const DecisionInput& input) override { inputs.push_back(input); }
  std::vector<Decision> list;
  std::vector<DecisionInput> inputs;
};

class Answers final : public GatewaySink {
 public:
  Rendering render(const std::shared_ptr<const InferRequest>&, const InferResult&,
                   const ports::ModelVersion&) override {
    if (!cannot_render) return {.later = renders_later, .refusal = {}};
    return {.refusal = Refusal{EndReason::kInvalid, "not to be rendered", {}}};
  }
  bool renders_later = false;
  bool cannot_render = false;
  void on_answer(GatewayAnswer answer) override { all.push_back(std::move(answer)); }
  [[nodiscard]] EndReason reason(size_t i) const {
    return all[i].refusal ? all[i].refusal->reason : EndReason::kOk;
  }
  std::vector<GatewayAnswer> all;
};

class GatewayTest : public testing::Test {
 protected:
  void SetUp() override {
    config_.name = "m";
    config_.max_batch_size = 4;
    config_.inputs = {{.name = "x", .type = DataType::kFp32, .dims = {2}}};
    config_.outputs = {{.name = "y", .type = DataType::kFp32, .dims = {2}}};
    publish(ModelState::kReady);
    make_gateway({});
  }

  void publish(ModelState state) {
    ports::ModelVersion version;
    version.model = "m";
    version.version = 1;
    version.state = state;
    version.config = config_;
    version.engine = engine_;
    version.metrics_slot = *telemetry_.slot_for("m", 1);
    auto entry = std::make_shared<ports::ModelEntry>();
    entry->name = "m";
    entry->required = true;
    entry->has_been_ready = entry->has_been_ready || state == ModelState::kReady;
    entry->versions[1] = std::make_shared<const ports::ModelVersion>(version);
    directory_.current.models["m"] = entry;
    ++directory_.number;
  }

  void make_gateway(const policy::AdmissionLimits& limits) {
    GatewayOptions options;
    options.limits = limits;
    gateway_ = std::make_unique<Gateway>(
        GatewayPorts{loop_, loop_, loop_, directory_, telemetry_, access_log_, &decisions_},
        options);
  }

  InferRequest request(Shape shape = {1, 2}) {
    InferRequest out;
    out.context.arrival = loop_.now();
    out.model = "m";
    out.inputs.push_back({"x", DataType::kFp32, std::move(shape), std::as_bytes(std::span(data_))});
    return out;
  }
  GatewayToken infer(InferRequest what) {
    return gateway_->infer(std::make_shared<InferRequest>(std::move(what)), answers_);
  }
  void settle_queue() { loop_.run_for(Duration()); }
  uint64_t ended(EndReason reason) {
    return telemetry_.cells(0, 0).ended[static_cast<size_t>(reason)].value();
  }

  std::array<float, 8> data_{};
  VirtualLoop loop_;
  FixedDirectory directory_;
  Telemetry telemetry_{1};
  Lines lines_;
  AccessLog access_log_{loop_, &lines_};
  Decisions decisions_;
  std::shared_ptr<ScriptedEngine> engine_ = std::make_shared<ScriptedEngine>();
  ModelConfig config_;
  Answers answers_;
  std::unique_ptr<Gateway> gateway_;
};

TEST_F(GatewayTest, AnswersOnceAndNeverFromWithinInfer) {
  infer(request());
  EXPECT_TRUE(answers_.all.empty());
  engine_->end_first({});
  EXPECT_TRUE(answers_.all.empty());
  settle_queue();
  ASSERT_EQ(answers_.all.size(), 1U);
  EXPECT_EQ(answers_.all[0].version, 1);
  EXPECT_EQ(gateway_->in_flight(), 0U);
  EXPECT_EQ(ended(EndReason::kOk), 1U);
  ASSERT_EQ(lines_.lines.size(), 1U);
  EXPECT_NE(lines_.lines[0].find("\"end_reason\":\"ok\""), std::string::npos);
}

TEST_F(GatewayTest, ARefusalIsPostedCountedAndLogged) {
  InferRequest wrong = request();
  wrong.model = "nobody";
  infer(std::move(wrong));
  EXPECT_TRUE(answers_.all.empty());
  settle_queue();
  ASSERT_EQ(answers_.all.size(), 1U);
  EXPECT_EQ(answers_.reason(0), EndReason::kNotFound);
  EXPECT_NE(lines_.lines[0].find("\"end_reason\":\"not_found\""), std::string::npos);
  EXPECT_EQ(telemetry_.cells(0).refused[static_cast<size_t>(EndReason::kNotFound)].value(), 1U);
}

TEST_F(GatewayTest, TheDeadlineHoldsWhileTheCallRuns) {  // server#7512
  InferRequest late = request();
  late.context.deadline = loop_.now() + Duration::ms(10);
  engine_->running = true;
  infer(std::move(late));
  loop_.run_for(Duration::ms(9));
  EXPECT_TRUE(answers_.all.empty());
  loop_.run_for(Duration::ms(1));
  ASSERT_EQ(answers_.all.size(), 1U);
  EXPECT_EQ(answers_.reason(0), EndReason::kDeadlineRunning);
}

TEST_F(GatewayTest, ADeadlineThatPassesInTheQueueSaysSo) {
  InferRequest late = request();
  late.context.deadline = loop_.now() + Duration::ms(10);
  infer(std::move(late));
  loop_.run_for(Duration::ms(10));
  ASSERT_EQ(answers_.all.size(), 1U);
  EXPECT_EQ(answers_.reason(0), EndReason::kDeadlineQueued);
}

TEST_F(GatewayTest, AQueueDeadlineEndsOnlyWhatIsStillQueued) {
  engine_->queue_deadline = loop_.now() + Duration::ms(5);
  infer(request());
  loop_.run_for(Duration::ms(5));
  ASSERT_EQ(answers_.all.size(), 1U);
  EXPECT_EQ(answers_.reason(0), EndReason::kDeadlineQueued);
  engine_->queue_deadline = loop_.now() + Duration::ms(5);
  engine_->running = true;
  infer(request());
  loop_.run_for(Duration::ms(20));
  EXPECT_EQ(answers_.all.size(), 1U);
  engine_->end_first({});
  settle_queue();
  EXPECT_EQ(answers_.reason(1), EndReason::kOk);
}

TEST_F(GatewayTest, AClientThatGoesAwayFreesItsWork) {  // server#8982
  const GatewayToken token = infer(request());
  gateway_->cancel(token);
  settle_queue();
  EXPECT_EQ(engine_->open(), 0U);
  EXPECT_EQ(answers_.reason(0), EndReason::kClientGone);
  gateway_->cancel(token);  // answered: no effect
  EXPECT_EQ(engine_->aborts, 1);
}

TEST_F(GatewayTest, ADeadlineAndACancelInOneTurnEndTheCallOnce) {  // server#7368
  InferRequest racing = request();
  racing.context.deadline = loop_.now() + Duration::ms(1);
  const GatewayToken token = infer(std::move(racing));
  gateway_->cancel(token);
  engine_->end_first({});
  loop_.run_for(Duration::ms(5));
  EXPECT_EQ(answers_.all.size(), 1U);
  EXPECT_EQ(loop_.pending(), 0U);
}

TEST_F(GatewayTest, ReservationsComeBackWhateverTheEnd) {
  make_gateway({.max_in_flight = 1, .max_bytes = 100});
  infer(request());
  infer(request());
  settle_queue();
  ASSERT_EQ(answers_.all.size(), 1U);
  EXPECT_EQ(answers_.reason(0), EndReason::kOverloaded);
  EXPECT_GT(answers_.all[0].refusal->retry_after, Duration());
  ports::EngineEnd failed;
  failed.reason = EndReason::kEngineFailed;
  failed.refusal.reason = EndReason::kEngineFailed;
  engine_->end_first(std::move(failed));
  settle_queue();
  infer(request());
  settle_queue();
  EXPECT_EQ(engine_->open(), 1U);
  engine_->end_first({});
  settle_queue();
}

TEST_F(GatewayTest, RecordsWhatAdmissionRefusesWithWhatItSaw) {
  make_gateway({.max_in_flight = 1, .max_bytes = 100});
  infer(request());
  EXPECT_TRUE(decisions_.list.empty()) << "who enters is recorded where it queues";
  InferRequest refused = request();
  refused.context.bytes = 7;
  infer(std::move(refused));
  settle_queue();
  ASSERT_EQ(decisions_.list.size(), 1U);
  const Decision& decision = decisions_.list[0];
  EXPECT_EQ(decision.sequence, 1U);
  EXPECT_EQ(decision.kind, DecisionKind::kRefuse);
  EXPECT_EQ(decision.reason, DecisionReason::kInFlightLimit);
  EXPECT_EQ(decision.request.value() & 0xffff, 2U);
  EXPECT_EQ(decision.queued, 1U);
  ASSERT_EQ(decisions_.inputs.size(), 1U);
  EXPECT_EQ(decisions_.inputs[0].kind, InputKind::kAdmission);
  EXPECT_EQ(decisions_.inputs[0].in_flight, 1U);
  EXPECT_EQ(decisions_.inputs[0].bytes, 7U);
  engine_->end_first({});
  settle_queue();
}

TEST_F(GatewayTest, AnExpiredRequestIsNeverStarted) {
  InferRequest expired = request();
  expired.context.deadline = loop_.now();
  infer(std::move(expired));
  settle_queue();
  EXPECT_EQ(engine_->open(), 0U);
  EXPECT_EQ(answers_.reason(0), EndReason::kDeadlineQueued);
}

TEST_F(GatewayTest, ReadinessFollowsRequiredModelsAndShutdown) {
  EXPECT_TRUE(gateway_->server_ready().ready);
  publish(ModelState::kFailed);
  const ServerReadiness failed = gateway_->server_ready();
  EXPECT_FALSE(failed.ready);
  EXPECT_EQ(failed.reason, "model \"m\" failed: ");
  publish(ModelState::kReady);
  directory_.current.accepting = false;
  ++directory_.number;
  EXPECT_FALSE(gateway_->server_ready().ready);
  infer(request());  // served on during the lame-duck time
  EXPECT_EQ(engine_->open(), 1U);
  engine_->end_first({});
  settle_queue();
}

TEST_F(GatewayTest, BeforeTheScanNothingIsReadyAndNothingIsUnknown) {
  directory_.current = {};
  ++directory_.number;
  EXPECT_FALSE(gateway_->server_ready().ready);
  infer(request());
  settle_queue();
  EXPECT_EQ(answers_.reason(0), EndReason::kNotReady);
}

TEST_F(GatewayTest, AResultThatCannotBeRenderedEndsOnceWithTheRefusal) {
  answers_.cannot_render = true;
  infer(request());
  engine_->end_first({});
  settle_queue();
  ASSERT_EQ(answers_.all.size(), 1U);
  EXPECT_EQ(answers_.reason(0), EndReason::kInvalid);
  EXPECT_EQ(ended(EndReason::kOk), 0U);
  EXPECT_EQ(ended(EndReason::kInvalid), 1U);
}

TEST_F(GatewayTest, AViewOutlivesTheDirectoryItCameFrom) {
  const auto view = gateway_->view("m", std::nullopt);
  ASSERT_TRUE(view.has_value());
  directory_.current.models.clear();
  ++directory_.number;
  EXPECT_FALSE(gateway_->view("m", std::nullopt).has_value());
  EXPECT_EQ(view->served->model, "m");
}

TEST_F(GatewayTest, AModelThatIsNotReadyRefusesWithItsState) {
  publish(ModelState::kWarming);
  infer(request());
  settle_queue();
  EXPECT_EQ(answers_.reason(0), EndReason::kNotReady);
  EXPECT_NE(answers_.all[0].refusal->message.find("warming"), std::string::npos);
}

TEST_F(GatewayTest, FitChecksNamesTypesShapesAndRows) {
  const auto error = [&](InferRequest what) {
    const auto fits = fit_to_model(what, config_);
    return fits.has_value() ? std::string() : fits.error().message;
  };
  EXPECT_EQ(error(request()), "");
  EXPECT_EQ(error(request({1, 3})),
            "input \"x\" of model \"m\" has shape [-1,2], the request has [1,3]");
  EXPECT_NE(error(request({5, 2})).find("batch size 5"), std::string::npos);
  EXPECT_NE(error(request({0, 2})).find("batch size 0"), std::string::npos);
  InferRequest wrong_type = request();
  wrong_type.inputs[0].type = DataType::kInt32;
  EXPECT_EQ(error(std::move(wrong_type)),
            "input \"x\" of model \"m\" is FP32, the request has INT32");
  InferRequest unknown = request();
  unknown.inputs[0].name = "z";
  EXPECT_NE(error(std::move(unknown)).find("lacks input \"x\""), std::string::npos);
  InferRequest twice = request();
  twice.inputs.push_back(twice.inputs[0]);
  EXPECT_EQ(error(std::move(twice)), "the request names an input twice");
  InferRequest extra = request();
  extra.inputs.push_back({"z", DataType::kFp32, {1, 2}, {}});
  EXPECT_EQ(error(std::move(extra)), "model \"m\" has no input \"z\"");
  InferRequest output = request();
  output.outputs.push_back({.name = "q"});
  EXPECT_EQ(error(std::move(output)), "model \"m\" has no output \"q\"");
}

TEST_F(GatewayTest, StatisticsSayWhatIsNotThereAsTritonDoes) {
  EXPECT_EQ(gateway_->statistics("none", {}).error().reason, EndReason::kNotFound);
  EXPECT_EQ(gateway_->statistics("m", 9).error().reason, EndReason::kNotFound);
  infer(request());
  settle_queue();
  engine_->end_first(
      {.reason = EndReason::kEngineFailed, .result = {}, .refusal = {}, .timings = {}});
  loop_.run_for(Duration::ms(1));
  const auto found = gateway_->statistics("m", {});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->at(0).fail.count, 1U);
  EXPECT_EQ(found->at(0).last_inference_ms, 1'000);
  EXPECT_EQ(gateway_->statistics("", {})->size(), 1U);
  publish(ModelState::kFailed);
  EXPECT_EQ(gateway_->statistics("m", {}).error().reason, EndReason::kInvalid);
  EXPECT_EQ(gateway_->statistics("m", 1).error().reason, EndReason::kInvalid);
  EXPECT_TRUE(gateway_->statistics("", {})->empty());
}

}  // namespace
}  // namespace baton::service
