#include "service/gateway/http_front.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "ports/testing/fixed_directory.h"
#include "ports/testing/manual_jobs.h"
#include "ports/testing/scripted_engine.h"
#include "ports/testing/virtual_loop.h"
#include "protocol/compression/zlib_stream.h"
#include "service/gateway/expand_body.h"
#include "service/gateway/metrics_front.h"

namespace baton::service {
namespace {

using ports::testing::FixedDirectory;
using ports::testing::ManualJobs;
using ports::testing::ScriptedEngine;
using ports::testing::VirtualLoop;
using protocol::compression::Encoding;
using protocol::http1::ExchangeId;
using protocol::http1::HttpRequest;
using protocol::http1::HttpResponse;

class Responses final : public protocol::http1::HttpResponder {
 public:
  void respond(ExchangeId id, HttpResponse response) override {
    EXPECT_TRUE(all.emplace(id.value(), std::move(response)).second) << "answered twice";
  }
  [[nodiscard]] int status(uint64_t id) const { return all.contains(id) ? all.at(id).status : 0; }
  std::map<uint64_t, HttpResponse> all;
};

class Lines final : public ports::LogSink {
 public:
  void write(std::string_view line) override { last = line; }
  std::string last;
};

class HttpFrontTest : public testing::Test {
 protected:
  static constexpr int64_t kMany = 300'000;  // numbers, in JSON well above kMostJsonOnLoop

  void SetUp() override {
    config_.name = "m";
    config_.inputs = {{.name = "x", .type = DataType::kFp32, .dims = {-1}}};
    config_.outputs = {{.name = "y", .type = DataType::kFp32, .dims = {-1}}};
    auto version = std::make_shared<ports::ModelVersion>();
    version->model = "m";
    version->version = 1;
    version->state = ModelState::kReady;
    version->config = config_;
    version->engine = engine_;
    version->metrics_slot = *telemetry_.slot_for("m", 1);
    auto entry = std::make_shared<ports::ModelEntry>();
    entry->name = "m";
    entry->versions[1] = version;
    directory_.current.models["m"] = entry;
    make_front({});
  }
  void TearDown() override {
    jobs_.run_all();
    while (engine_->end_first({})) loop_.run_for(Duration());
    loop_.run_for(Duration());
    front_.reset();
  }

  void make_front(const policy::AdmissionLimits& limits, const AccessControl* access = nullptr) {
    front_.reset();
    GatewayOptions options;
    options.limits = limits;
    gateway_ = std::make_unique<Gateway>(
        GatewayPorts{loop_, loop_, loop_, directory_, telemetry_, access_log_, nullptr, &answers_},
        options);
    front_ = std::make_unique<HttpFront>(
        HttpFrontPorts{*gateway_, loop_, telemetry_, loop_, access, &jobs_, &jobs_});
  }

  static std::string body_of(int64_t count) {
    std::string body = R"({"inputs":[{"name":"x","datatype":"FP32","shape":[)" +
                       std::to_string(count) + R"(],"data":[1)";
    for (int64_t i = 1; i < count; ++i) body += ",1";
    return body + "]}]}";
  }

  HttpRequest request(std::string_view method, std::string_view target,
                      std::vector<protocol::http1::HeaderView> headers = {}) {
    HttpRequest out;
    out.method = method;
    out.target = target;
    out.headers = std::move(headers);
    out.arrival = loop_.now();
    return out;
  }
  // Posts a body to the model; the exchange's number.
  uint64_t post(std::string body, std::vector<protocol::http1::HeaderView> headers = {}) {
    HttpRequest out = request("POST", "/v2/models/m/infer", std::move(headers));
    const size_t size = body.size();
    body.resize(size + protocol::http1::kBodyPadding);
    const auto storage = std::make_shared<std::string>(std::move(body));
    out.body = std::string_view(*storage).substr(0, size);
    out.body_storage = storage;
    body_ = storage;
    front_->on_request(ExchangeId(++last_), std::move(out), responses_);
    return last_;
  }
  void turn() { loop_.run_for(Duration()); }
  // Ends the engine's oldest call with so many numbers.
  void answer(int64_t count) {
    auto numbers = std::make_shared<std::vector<float>>(static_cast<size_t>(count), 1.0F);
    ports::EngineEnd end;
    end.result.outputs = {{"y", DataType::kFp32, {count}, std::as_bytes(std::span(*numbers))}};
    end.result.storage = {numbers};
    numbers_ = numbers;
    ASSERT_TRUE(engine_->end_first(std::move(end)));
    turn();
  }
  uint64_t ended(EndReason reason) {
    return telemetry_.cells(0, 0).ended[static_cast<size_t>(reason)].value();
  }
  uint64_t refused(EndReason reason) {
    return telemetry_.cells(0).refused[static_cast<size_t>(reason)].value();
  }

  VirtualLoop loop_;
  ManualJobs jobs_;
  FixedDirectory directory_;
  Telemetry telemetry_{1};
  Lines lines_;
  AccessLog access_log_{loop_, &lines_};
  ByteBudget answers_{8 << 20};
  std::shared_ptr<ScriptedEngine> engine_ = std::make_shared<ScriptedEngine>();
  ModelConfig config_;
  Responses responses_;
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<HttpFront> front_;
  std::weak_ptr<const void> body_;     // of the latest post()
  std::weak_ptr<const void> numbers_;  // of the latest answer()
  uint64_t last_ = 0;
};

TEST_F(HttpFrontTest, TheLoopAnswersOthersWhileAJobReadsLargeJson) {
  const uint64_t large = post(body_of(kMany));
  EXPECT_EQ(jobs_.waiting(), 1U);
  EXPECT_EQ(engine_->open(), 0U);
  const uint64_t small = post(body_of(1));
  answer(1);
  EXPECT_EQ(responses_.status(small), 200);
  EXPECT_EQ(responses_.status(large), 0);
  jobs_.run_all();
  turn();
  ASSERT_EQ(engine_->open(), 1U);
  EXPECT_EQ(engine_->first_request().inputs.at(0).shape, Shape{kMany});
  answer(1);
  EXPECT_EQ(responses_.status(large), 200);
  EXPECT_EQ(gateway_->in_flight(), 0U);
}

TEST_F(HttpFrontTest, LargeBinaryTensorsAreReadOnTheLoop) {
  const std::string json = R"({"inputs":[{"name":"x","datatype":"FP32","shape":[300000],)"
                           R"("parameters":{"binary_data_size":1200000}}]})";
  const std::string length = std::to_string(json.size());
  post(json + std::string(1'200'000, '\0'), {{"inference-header-content-length", length}});
  EXPECT_EQ(jobs_.waiting(), 0U);
  EXPECT_EQ(engine_->open(), 1U);
}

TEST_F(HttpFrontTest, LargeJsonThatIsWrongIsRefusedLikeSmall) {
  const uint64_t id = post(body_of(kMany) + "}");
  jobs_.run_all();
  turn();
  EXPECT_EQ(responses_.status(id), 400);
  EXPECT_EQ(refused(EndReason::kInvalid), 1U);
}

TEST_F(HttpFrontTest, ADeadlineHoldsWhileAJobReads) {
  const uint64_t id = post(body_of(kMany), {{"x-request-timeout-ms", "10"}});
  loop_.run_for(Duration::ms(9));
  EXPECT_EQ(responses_.status(id), 0);
  loop_.run_for(Duration::ms(1));
  EXPECT_EQ(responses_.status(id), 503);
  EXPECT_EQ(refused(EndReason::kDeadlineQueued), 1U);
  jobs_.run_all();
  turn();
  EXPECT_EQ(engine_->open(), 0U);
  EXPECT_EQ(gateway_->in_flight(), 0U);
}

TEST_F(HttpFrontTest, AClientThatGoesWhileAJobReadsIsDropped) {
  const uint64_t id = post(body_of(kMany));
  front_->on_client_gone(ExchangeId(id));
  jobs_.run_all();  // even when its result comes first
  turn();
  EXPECT_EQ(engine_->open(), 0U);
  EXPECT_EQ(gateway_->in_flight(), 0U);
  EXPECT_EQ(refused(EndReason::kClientGone), 1U);
}

TEST_F(HttpFrontTest, ABodyIsFreedWithItsClientThoughItsJobWaits) {
  const uint64_t id = post(body_of(kMany));
  EXPECT_FALSE(body_.expired());
  front_->on_client_gone(ExchangeId(id));
  turn();
  EXPECT_EQ(jobs_.waiting(), 1U);
  EXPECT_TRUE(body_.expired());
}

TEST_F(HttpFrontTest, WhatAJobReadsIsInFlight) {
  make_front({.max_in_flight = 1, .max_bytes = 64 << 20});
  const uint64_t large = post(body_of(kMany));
  EXPECT_EQ(responses_.status(post(body_of(kMany))), 503);
  EXPECT_NE(lines_.last.find(R"("request":)"), std::string::npos) << lines_.last;
  EXPECT_EQ(lines_.last.find(R"("request":0)"), std::string::npos) << lines_.last;
  EXPECT_EQ(jobs_.waiting(), 1U);
  const uint64_t small = post(body_of(1));
  turn();
  EXPECT_EQ(responses_.status(small), 503);
  jobs_.run_all();
  turn();
  answer(1);
  EXPECT_EQ(responses_.status(large), 200);
}

TEST_F(HttpFrontTest, TheLoopAnswersOthersWhileAJobWritesLargeJson) {
  const uint64_t large = post(body_of(1));
  answer(kMany);
  EXPECT_EQ(jobs_.waiting(), 1U);
  EXPECT_EQ(responses_.status(large), 0);
  const uint64_t small = post(body_of(1));
  answer(1);
  EXPECT_EQ(responses_.status(small), 200);
  jobs_.run_all();
  turn();
  EXPECT_EQ(responses_.status(large), 200);
  EXPECT_GT(responses_.all.at(large).body.size(), 600'000U);
  EXPECT_EQ(ended(EndReason::kOk), 2U);
}

TEST_F(HttpFrontTest, AClientThatGoesWhileAJobWritesEndsOnce) {
  const uint64_t id = post(body_of(1));
  answer(kMany);
  front_->on_client_gone(ExchangeId(id));
  turn();
  EXPECT_EQ(gateway_->in_flight(), 0U);
  EXPECT_EQ(ended(EndReason::kClientGone), 1U);
  jobs_.run_all();
  turn();
  EXPECT_EQ(ended(EndReason::kOk), 0U);
}

TEST_F(HttpFrontTest, AResultIsFreedWithItsClientThoughItsJobWaits) {
  const uint64_t id = post(body_of(1));
  answer(kMany);
  EXPECT_FALSE(numbers_.expired());
  front_->on_client_gone(ExchangeId(id));
  turn();
  EXPECT_EQ(jobs_.waiting(), 1U);
  EXPECT_TRUE(numbers_.expired());
}

TEST_F(HttpFrontTest, ADeadlineHoldsWhileAJobWrites) {
  const uint64_t id = post(body_of(1), {{"x-request-timeout-ms", "10"}});
  answer(kMany);
  loop_.run_for(Duration::ms(10));
  EXPECT_EQ(responses_.status(id), 503);
  EXPECT_EQ(ended(EndReason::kDeadlineRunning), 1U);
}

TEST_F(HttpFrontTest, AnswersThatWaitForTheirClientsAreBounded) {
  const std::string body = R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[1]}],)"
                           R"("parameters":{"binary_data_output":true}})";
  std::vector<uint64_t> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(post(body));
    answer(1 << 20);  // 4 MiB
  }
  EXPECT_EQ(responses_.status(ids[0]), 200);
  EXPECT_EQ(responses_.status(ids[1]), 503);  // with its head the second is above 8 MiB
  EXPECT_NE(responses_.all.at(ids[1]).body.find("overloaded"), std::string::npos);
  EXPECT_EQ(ended(EndReason::kOverloaded), 2U);
  responses_.all.clear();  // the client has taken it
  EXPECT_EQ(answers_.used(), 0U);
  const uint64_t next = post(body);
  answer(1 << 20);
  EXPECT_EQ(responses_.status(next), 200);
}

TEST_F(HttpFrontTest, AnswersThatWaitForTheirTextAreBounded) {
  const std::string body = R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[1]}]})";
  std::vector<uint64_t> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(post(body));
    answer(1 << 18);  // 1 MiB, held at 4
  }
  EXPECT_EQ(jobs_.waiting(), 2U);
  EXPECT_EQ(responses_.status(ids[2]), 503);
  EXPECT_EQ(answers_.used(), 8U << 20);
  jobs_.run_all();
  turn();
  EXPECT_EQ(responses_.status(ids[0]), 200);
  EXPECT_EQ(responses_.status(ids[1]), 200);
  EXPECT_LT(answers_.used(), 2U << 20);  // 2 bytes a number now
}

std::string packed(Encoding encoding, std::string_view text) {
  const std::array pieces = {std::as_bytes(std::span(text))};
  return protocol::compression::compress(encoding, pieces).value_or("");
}

std::string unpacked(Encoding encoding, std::string_view body) {
  HttpRequest request;
  request.body = body;
  EXPECT_TRUE(expand_body(request, encoding, 64 << 20).has_value());
  return std::string(request.body);
}

TEST_F(HttpFrontTest, SmallCompressedBodiesAreExpandedOnTheLoop) {
  for (const auto& [name, encoding] :
       {std::pair{"gzip", Encoding::kGzip}, std::pair{"deflate", Encoding::kDeflate}}) {
    const uint64_t id = post(packed(encoding, body_of(1000)), {{"content-encoding", name}});
    EXPECT_EQ(jobs_.waiting(), 0U);
    ASSERT_EQ(engine_->open(), 1U);
    EXPECT_EQ(engine_->first_request().inputs.at(0).shape, Shape{1000});
    EXPECT_GE(engine_->first_request().context.bytes, body_of(1000).size());
    answer(1);
    EXPECT_EQ(responses_.status(id), 200);
  }
}

TEST_F(HttpFrontTest, LargeCompressedBodiesAreExpandedByAJob) {
  const uint64_t id = post(packed(Encoding::kGzip, body_of(kMany)), {{"content-encoding", "gzip"}});
  EXPECT_EQ(jobs_.waiting(), 1U);
  jobs_.run_all();
  turn();
  ASSERT_EQ(engine_->open(), 1U);
  EXPECT_EQ(engine_->first_request().inputs.at(0).shape, Shape{kMany});
  EXPECT_GE(engine_->first_request().context.bytes, body_of(kMany).size());
  answer(1);
  EXPECT_EQ(responses_.status(id), 200);
}

TEST_F(HttpFrontTest, ABodyThatExpandsBeyondTheLimitIsTooLarge) {  // server#8764
  const std::string bomb = packed(Encoding::kGzip, std::string(65 << 20, ' '));
  const uint64_t id = post(bomb, {{"content-encoding", "gzip"}});
  jobs_.run_all();
  turn();
  EXPECT_EQ(responses_.status(id), 413);
  EXPECT_NE(responses_.all.at(id).body.find("limits.body"), std::string::npos);
  EXPECT_EQ(gateway_->in_flight(), 0U);
}

TEST_F(HttpFrontTest, EncodingsThatAreNotOfferedAre415) {
  for (const char* name : {"br", "gzip, deflate", ""}) {
    const uint64_t id = post(body_of(1), {{"content-encoding", name}});
    EXPECT_EQ(responses_.status(id), 415) << name;
  }
  EXPECT_EQ(responses_.status(post(body_of(1), {{"content-encoding", "gzip"}})), 400);
}

TEST_F(HttpFrontTest, AnswersAreCompressedWhereItPaysAndIsAccepted) {
  const auto encoding_of = [&](uint64_t id) {
    for (const auto& header : responses_.all.at(id).headers) {
      if (header.name == "Content-Encoding") return header.value;
    }
    return std::string();
  };
  const uint64_t small = post(body_of(1), {{"accept-encoding", "gzip"}});
  answer(1);
  EXPECT_EQ(encoding_of(small), "");
  const uint64_t plain = post(body_of(1));
  answer(2000);
  EXPECT_EQ(encoding_of(plain), "");
  const uint64_t large = post(body_of(1), {{"accept-encoding", "deflate;q=1, gzip;q=0.5"}});
  answer(2000);
  EXPECT_EQ(encoding_of(large), "deflate");
  EXPECT_EQ(unpacked(Encoding::kDeflate, responses_.all.at(large).body),
            responses_.all.at(plain).body);
}

TEST_F(HttpFrontTest, LargeAnswersAreCompressedByAJob) {
  const std::string json = R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[1]}],)"
                           R"("parameters":{"binary_data_output":true}})";
  const uint64_t id = post(json, {{"accept-encoding", "gzip"}});
  answer(kMany);
  EXPECT_EQ(responses_.status(id), 0);
  jobs_.run_all();
  turn();
  ASSERT_EQ(responses_.status(id), 200);
  const HttpResponse& response = responses_.all.at(id);
  EXPECT_EQ(response.headers.at(0).value, "gzip");
  EXPECT_EQ(response.headers.at(2).name, "Inference-Header-Content-Length");
  const std::string whole = unpacked(Encoding::kGzip, response.body);
  EXPECT_EQ(whole.size(), std::stoul(response.headers.at(2).value) + kMany * sizeof(float));
}

TEST_F(HttpFrontTest, HealthIsAnsweredWithoutAKeyWithASlashAndToHead) {
  const AccessControl access({{"k", "t"}});
  make_front({}, &access);
  for (const char* target : {"/livez", "/livez/", "/readyz/", "/v2/health/live/", "/livez?x=1"}) {
    EXPECT_FALSE(front_->on_head(request("GET", target), {}).has_value()) << target;
    const HttpRequest head = request("HEAD", target);
    EXPECT_FALSE(front_->on_head(head, {}).has_value()) << target;
    front_->on_request(ExchangeId(++last_), head, responses_);
    EXPECT_EQ(responses_.status(last_), 200) << target;
  }
  EXPECT_EQ(front_->on_head(request("GET", "/v2/models/m"), {})->status, 401);
}

TEST_F(HttpFrontTest, AWrongMethodIsToldTheRightOnes) {
  const auto allowed = [&](const char* method, const char* target) {
    const auto response = front_->on_head(request(method, target), {});
    return response && response->status == 405
               ? std::string(response->headers.at(0).name) + ": " + response->headers.at(0).value
               : std::string();
  };
  EXPECT_EQ(allowed("GET", "/v2/models/m/infer"), "Allow: POST");
  EXPECT_EQ(allowed("POST", "/livez"), "Allow: GET, HEAD");
  EXPECT_EQ(allowed("PUT", "/v2/models/m"), "Allow: GET, HEAD");
}

TEST_F(HttpFrontTest, AHeaderThatStandsTwiceIsRefused) {
  const AccessControl access({{"k", "t"}});
  make_front({}, &access);
  for (const char* name : {"x-api-key", "authorization", "x-request-timeout-ms"}) {
    const auto refused =
        front_->on_head(request("POST", "/v2/models/m/infer", {{name, "k"}, {name, "k"}}), {});
    ASSERT_TRUE(refused.has_value()) << name;
    EXPECT_EQ(refused->status, 400) << name;
  }
}

TEST_F(HttpFrontTest, TheListOfModelsNeedsAKey) {
  const AccessControl access({{"k", "t"}});
  MetricsFront metrics(directory_, telemetry_, [] { return ProcessCounts(); }, &access);
  const auto status = [&](const char* target, std::vector<protocol::http1::HeaderView> headers) {
    metrics.on_request(ExchangeId(++last_), request("GET", target, std::move(headers)), responses_);
    return responses_.status(last_);
  };
  EXPECT_EQ(status("/models", {}), 401);
  EXPECT_EQ(status("/models/", {{"x-api-key", "wrong"}}), 401);
  EXPECT_EQ(status("/models", {{"x-api-key", "k"}}), 200);
  EXPECT_EQ(status("/models", {{"x-api-key", "k"}, {"x-api-key", "k"}}), 400);
  EXPECT_EQ(status("/metrics", {}), 200);
  EXPECT_EQ(status("/livez/", {}), 200);
}

}  // namespace
}  // namespace baton::service
