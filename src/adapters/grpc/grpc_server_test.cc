#include "adapters/grpc/test_support.h"

#include <grpcpp/generic/generic_stub.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <thread>

#include "adapters/grpc/refusal_status.h"
#include "protocol/oip/errors_reference.h"

namespace baton::adapters::grpc_api {
namespace {

using Code = protocol::grpc_wire::StatusCode;
using grpc::StatusCode;

TEST_F(GrpcServerTest, InfersSmallAndLargeTensors) {
  for (size_t size : {size_t{0}, size_t{8}, size_t{4095}, size_t{4096}, size_t{10 << 20}}) {
    grpc::ClientContext context;
    ModelInferResponse response;
    auto message = request("echo", std::string(size, 'a'));
    message.set_id("id-1");
    message.set_model_version("7");
    const grpc::Status status = stub_->ModelInfer(&context, message, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.model_name(), "echo");
    EXPECT_EQ(response.model_version(), "7");
    EXPECT_EQ(response.id(), "id-1");
    ASSERT_EQ(response.raw_output_contents_size(), 1);
    EXPECT_TRUE(response.raw_output_contents(0) == message.raw_input_contents(0));
    EXPECT_EQ(response.outputs(0).datatype(), "UINT8");
  }
}

TEST_F(GrpcServerTest, ReadsTheCallsContext) {
  grpc::ClientContext context;
  context.AddMetadata("x-request-id", "r-1");
  context.AddMetadata("x-request-class", "batch");
  context.AddMetadata("x-tenant", "t-1");
  context.AddMetadata("x-api-key", "secret");
  context.AddMetadata("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  ModelInferResponse response;
  const Instant before = clock_.now();
  auto message = request("m");
  (*message.mutable_parameters())["priority"].set_int64_param(3);
  ASSERT_TRUE(stub_->ModelInfer(&context, message, &response).ok());
  const RequestContext& seen = front_.last_context;
  EXPECT_EQ(seen.client_id, "r-1");
  EXPECT_EQ(seen.traffic_class, TrafficClass::kBatch);
  EXPECT_EQ(seen.tenant, "t-1");
  EXPECT_EQ(seen.priority, 3U);
  EXPECT_EQ(seen.protocol, Protocol::kGrpc);
  EXPECT_TRUE(seen.trace.present());
  EXPECT_GT(seen.bytes, 8U);
  EXPECT_GE(seen.arrival, before);
  EXPECT_LE(seen.deadline - before, Duration::ms(20'500));
  EXPECT_GE(seen.deadline - before, Duration::ms(19'000));
  EXPECT_EQ(front_.last_caller.authorization, "Bearer secret");
  EXPECT_EQ(front_.last_caller.peer, "127.0.0.1");
  EXPECT_EQ(response.id(), "");  // echoes the message's own id only

  grpc::ClientContext shorter;
  (*message.mutable_parameters())["timeout"].set_int64_param(2'000'000);
  shorter.AddMetadata("x-request-timeout-ms", "1000");
  ASSERT_TRUE(stub_->ModelInfer(&shorter, message, &response).ok());
  EXPECT_EQ(front_.last_context.deadline - front_.last_context.arrival, Duration::s(1));
}

TEST_F(GrpcServerTest, MapsEndReasonsToStatuses) {
  const std::map<std::string, StatusCode> expected = {
      {"invalid", StatusCode::INVALID_ARGUMENT},     {"too_large", StatusCode::RESOURCE_EXHAUSTED},
      {"unauthorized", StatusCode::UNAUTHENTICATED}, {"not_found", StatusCode::NOT_FOUND},
      {"unsupported", StatusCode::UNIMPLEMENTED},    {"not_ready", StatusCode::UNAVAILABLE},
      {"queue_full", StatusCode::UNAVAILABLE},       {"overloaded", StatusCode::UNAVAILABLE},
      {"deadline_queued", StatusCode::UNAVAILABLE},  {"deadline_running", StatusCode::UNAVAILABLE},
      {"client_gone", StatusCode::CANCELLED},        {"shutting_down", StatusCode::UNAVAILABLE},
      {"engine_failed", StatusCode::INTERNAL},
  };
  for (const auto& [model, code] : expected) {
    grpc::ClientContext context;
    ModelInferResponse response;
    const grpc::Status status = stub_->ModelInfer(&context, request(model), &response);
    EXPECT_EQ(status.error_code(), code) << model;
    EXPECT_EQ(status.error_message(), "refused: " + model);
    const auto& trailers = context.GetServerTrailingMetadata();
    ASSERT_EQ(trailers.count("baton-reason"), 1U);
    EXPECT_EQ(trailers.find("baton-reason")->second, model);
    EXPECT_EQ(trailers.find("grpc-retry-pushback-ms")->second, "1500");
  }
  // A deadline of the client's own is told as such.
  grpc::ClientContext context;
  ModelInferResponse response;
  auto message = request("deadline_queued");
  (*message.mutable_parameters())["timeout"].set_int64_param(1);
  EXPECT_EQ(stub_->ModelInfer(&context, message, &response).error_code(),
            StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(GrpcServerTest, RefusesMalformedRequests) {
  auto mixed = request("m");  // U145
  mixed.mutable_inputs(0)->mutable_contents()->add_uint_contents(1);
  grpc::ClientContext context;
  ModelInferResponse response;
  const grpc::Status status = stub_->ModelInfer(&context, mixed, &response);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("one of them"), std::string::npos);
  EXPECT_TRUE(eventually([&] { return front_.refused.load() == 1; }));
  grpc::ClientContext bad_class;
  bad_class.AddMetadata("x-request-class", "urgent");
  EXPECT_EQ(stub_->ModelInfer(&bad_class, request("m"), &response).error_code(),
            StatusCode::INVALID_ARGUMENT);
  grpc::ClientContext bad_timeout;
  bad_timeout.AddMetadata("x-request-timeout-ms", "0");
  EXPECT_EQ(stub_->ModelInfer(&bad_timeout, request("m"), &response).error_code(),
            StatusCode::INVALID_ARGUMENT);
}

TEST_F(GrpcServerTest, TellsWhoseTheRefusedCallWas) {
  const auto add_headers = [](grpc::ClientContext& context) {
    context.AddMetadata("x-request-id", "r-1");
    context.AddMetadata("x-tenant", "t-1");
    context.AddMetadata("x-api-key", "secret");
    context.AddMetadata("x-request-class", "urgent");
    context.AddMetadata("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  };
  const auto expect_known = [&] {
    EXPECT_EQ(front_.last_context.client_id, "r-1");
    EXPECT_EQ(front_.last_context.tenant, "t-1");
    EXPECT_TRUE(front_.last_context.trace.present());
    EXPECT_GT(front_.last_context.bytes, 0U);
    EXPECT_EQ(front_.last_caller.authorization, "Bearer secret");
    front_.last_context = {};
  };
  grpc::ClientContext infer;
  add_headers(infer);
  ModelInferResponse response;
  EXPECT_FALSE(stub_->ModelInfer(&infer, request("m"), &response).ok());
  ASSERT_TRUE(eventually([&] { return front_.refused.load() == 1; }));
  on_worker(expect_known);
  grpc::ClientContext query;
  add_headers(query);
  inference::ModelMetadataRequest model;
  model.set_name("other");
  inference::ModelMetadataResponse metadata;
  EXPECT_FALSE(stub_->ModelMetadata(&query, model, &metadata).ok());
  expect_known();
}

TEST_F(GrpcServerTest, RefusesBytesThatAreNoMessage) {
  for (const char* method : {"ModelInfer", "ServerLive", "ServerReady", "ModelReady",
                             "ServerMetadata", "ModelMetadata", "ModelConfig"}) {
    const grpc::Slice slice(std::string("\x2a\xff\xff"));  // field 5, longer than the bytes
    const grpc::ByteBuffer bytes(&slice, 1);
    grpc::ByteBuffer answer;
    grpc::ClientContext context;
    std::promise<grpc::Status> ended;
    grpc::GenericStub(channel_).UnaryCall(
        &context, std::string("/inference.GRPCInferenceService/") + method, {}, &bytes, &answer,
        [&](grpc::Status status) { ended.set_value(std::move(status)); });
    EXPECT_EQ(ended.get_future().get().error_code(), StatusCode::INVALID_ARGUMENT) << method;
  }
  EXPECT_TRUE(eventually([&] { return front_.refused.load() == 7; }));
}

TEST_F(GrpcServerTest, AsksForAKeyForAllButHealth) {
  front_.key = "secret";
  const auto code = [&](auto call, std::vector<const char*> keys) {
    grpc::ClientContext context;
    for (const char* key : keys) context.AddMetadata("x-api-key", key);
    return call(context).error_code();
  };
  const auto health = [&](grpc::ClientContext& context) {
    inference::ServerReadyResponse out;
    return stub_->ServerReady(&context, {}, &out);
  };
  const auto server = [&](grpc::ClientContext& context) {
    inference::ServerMetadataResponse out;
    return stub_->ServerMetadata(&context, {}, &out);
  };
  const auto ready = [&](grpc::ClientContext& context) {
    inference::ModelReadyResponse out;
    return stub_->ModelReady(&context, {}, &out);
  };
  const auto infer = [&](grpc::ClientContext& context) {
    ModelInferResponse out;
    return stub_->ModelInfer(&context, request("m"), &out);
  };
  EXPECT_EQ(code(health, {}), StatusCode::OK);
  EXPECT_EQ(code(server, {}), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(code(ready, {"wrong"}), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(code(infer, {}), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(code(server, {"secret"}), StatusCode::OK);
  EXPECT_EQ(code(ready, {"secret"}), StatusCode::OK);
  EXPECT_EQ(code(infer, {"secret"}), StatusCode::OK);
  const auto check = [&](std::string name) {
    return [&, name](grpc::ClientContext& context) {
      grpc::health::v1::HealthCheckRequest service;
      service.set_service(name);
      grpc::health::v1::HealthCheckResponse out;
      return health_->Check(&context, service, &out);
    };
  };
  EXPECT_EQ(code(check(""), {}), StatusCode::OK);
  EXPECT_EQ(code(check("inference.GRPCInferenceService"), {}), StatusCode::OK);
  EXPECT_EQ(code(check("m"), {}), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(code(check("m"), {"secret"}), StatusCode::OK);
  const auto watch = [&](grpc::ClientContext& context) {
    grpc::health::v1::HealthCheckRequest service;
    service.set_service("m");
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    return health_->Watch(&context, service)->Finish();
  };
  EXPECT_EQ(code(watch, {}), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(code(infer, {"secret", "secret"}), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code(server, {"secret", "wrong"}), StatusCode::INVALID_ARGUMENT);
}

TEST_F(GrpcServerTest, OthersAreAnsweredWhileAJobReadsALargeMessage) {
  stop();
  readers_ = &jobs_;
  start({});
  grpc::ClientContext large;
  ModelInferResponse large_answer;
  std::atomic<bool> answered{false};
  std::thread caller([&] {
    EXPECT_TRUE(
        stub_->ModelInfer(&large, request("m", std::string(1 << 20, 'a')), &large_answer).ok());
    answered = true;
  });
  EXPECT_TRUE(eventually([&] { return jobs_.waiting() == 1; }));
  grpc::ClientContext small;
  ModelInferResponse small_answer;
  EXPECT_TRUE(stub_->ModelInfer(&small, request("m"), &small_answer).ok());
  EXPECT_FALSE(answered);
  jobs_.run_all();
  caller.join();
  EXPECT_EQ(large_answer.raw_output_contents(0).size(), 1U << 20);
}

TEST_F(GrpcServerTest, CountsTheParametersOfTensorsBeforeItReadsThem) {
  for (int count : {4000, 4200}) {
    auto message = request("m");
    for (int i = 0; i < count; ++i) {
      (*message.mutable_inputs(0)->mutable_parameters())["p" + std::to_string(i)].set_int64_param(
          1);
    }
    grpc::ClientContext context;
    ModelInferResponse response;
    EXPECT_EQ(stub_->ModelInfer(&context, message, &response).error_code(),
              count < 4096 ? StatusCode::OK : StatusCode::RESOURCE_EXHAUSTED);
  }
}

// triton server#1776: the limit is told as such.
TEST_F(GrpcServerTest, RefusesMessagesOverTheLimit) {
  GrpcServerOptions options;
  options.message_bytes_max = 1000;
  restart(options);
  grpc::ClientContext context;
  ModelInferResponse response;
  EXPECT_EQ(
      stub_->ModelInfer(&context, request("m", std::string(2000, 'a')), &response).error_code(),
      StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(GrpcServerTest, RefusesLargeQueriesBeforeTheyAreParsed) {
  const auto code = [&](auto call) {
    grpc::ClientContext context;
    return call(context).error_code();
  };
  const std::string name((64 << 10) + 1, 'a');
  EXPECT_EQ(code([&](grpc::ClientContext& context) {
              grpc::health::v1::HealthCheckRequest request;
              request.set_service(name);
              grpc::health::v1::HealthCheckResponse out;
              return health_->Check(&context, request, &out);
            }),
            StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(code([&](grpc::ClientContext& context) {
              inference::ModelReadyRequest request;
              request.set_name(name);
              inference::ModelReadyResponse out;
              return stub_->ModelReady(&context, request, &out);
            }),
            StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(front_.refused.load(), 2);
}

TEST_F(GrpcServerTest, CountsWhatAMessageBecomesInMemory) {
  const auto infer = [&](const char* type, int count) {
    ModelInferRequest message;
    message.set_model_name("m");
    auto* input = message.add_inputs();
    input->set_name("x");
    input->set_datatype(type);
    input->add_shape(count);
    const bool numbers = type == std::string("INT64");
    for (int i = 0; i < count; ++i) {
      numbers ? input->mutable_contents()->add_int64_contents(1)
              : input->mutable_contents()->add_bytes_contents("");
    }
    grpc::ClientContext context;
    ModelInferResponse response;
    return stub_->ModelInfer(&context, message, &response).error_code();
  };
  EXPECT_EQ(infer("BYTES", 10'000), StatusCode::OK);
  EXPECT_GT(front_.last_context.bytes, 320'000U);            // of 20 kB on the wire
  EXPECT_EQ(infer("INT64", (1 << 20) + 1), StatusCode::OK);  // a mask, just after a doubling
  EXPECT_GT(front_.last_context.bytes, 8U << 20);
  EXPECT_EQ(infer("BYTES", 1'100'000), StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(GrpcServerTest, CancelsWhatTheClientGivesUp) {
  grpc::ClientContext context;
  ModelInferResponse response;
  std::thread canceller([&] {
    eventually([&] { return front_.hung.load() == 1; });
    context.TryCancel();
  });
  EXPECT_EQ(stub_->ModelInfer(&context, request("hang"), &response).error_code(),
            StatusCode::CANCELLED);
  canceller.join();
  EXPECT_TRUE(eventually([&] { return front_.cancelled.load() == 1; }));
}

// Cancelling races with starting and ending: every call ends, none twice.
TEST_F(GrpcServerTest, SurvivesCancelsAtAnyMoment) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        grpc::ClientContext context;
        ModelInferResponse response;
        std::thread canceller([&] {
          std::this_thread::sleep_for(std::chrono::microseconds(37 * (i + t)));
          context.TryCancel();
        });
        const auto status = stub_->ModelInfer(&context, request(i % 2 ? "hang" : "m"), &response);
        EXPECT_TRUE(status.ok() || status.error_code() == StatusCode::CANCELLED)
            << status.error_code() << " " << status.error_message();
        canceller.join();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(eventually([&] { return front_.cancelled.load() == front_.hung.load(); }));
}

TEST_F(GrpcServerTest, AnswersQueries) {
  grpc::ClientContext c1;
  inference::ServerLiveResponse live;
  ASSERT_TRUE(stub_->ServerLive(&c1, {}, &live).ok());
  EXPECT_TRUE(live.live());
  grpc::ClientContext c2;
  inference::ServerReadyResponse ready;
  front_.ready = false;
  ASSERT_TRUE(stub_->ServerReady(&c2, {}, &ready).ok());
  EXPECT_FALSE(ready.ready());
  front_.ready = true;
  grpc::ClientContext c3;
  inference::ModelMetadataRequest model;
  model.set_name("m");
  inference::ModelMetadataResponse metadata;
  ASSERT_TRUE(stub_->ModelMetadata(&c3, model, &metadata).ok());
  EXPECT_EQ(metadata.versions(1), "2");
  EXPECT_EQ(metadata.inputs(0).datatype(), "BF16");
  EXPECT_EQ(metadata.inputs(0).shape(0), -1);
  grpc::ClientContext c4;
  model.set_name("other");
  EXPECT_EQ(stub_->ModelMetadata(&c4, model, &metadata).error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(front_.refused, 1);
  grpc::ClientContext c5;
  inference::ModelConfigRequest config_request;
  inference::ModelConfigResponse config;
  ASSERT_TRUE(stub_->ModelConfig(&c5, config_request, &config).ok());
  EXPECT_EQ(config.config().max_batch_size(), 8);
  grpc::ClientContext c6;
  inference::ModelReadyRequest ready_request;
  inference::ModelReadyResponse model_ready;
  ready_request.set_name("m");
  ASSERT_TRUE(stub_->ModelReady(&c6, ready_request, &model_ready).ok());
  EXPECT_TRUE(model_ready.ready());
  grpc::ClientContext c7;
  ready_request.set_version("x");
  EXPECT_EQ(stub_->ModelReady(&c7, ready_request, &model_ready).error_code(),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(front_.refused, 2);
  grpc::ClientContext c8;
  inference::ServerMetadataResponse server;
  ASSERT_TRUE(stub_->ServerMetadata(&c8, {}, &server).ok());
  EXPECT_EQ(server.name(), "baton");
}

TEST_F(GrpcServerTest, SaysWhatIsNotOffered) {
  grpc::ClientContext c1;
  inference::TraceSettingResponse settings;
  const grpc::Status status = stub_->TraceSetting(&c1, {}, &settings);
  EXPECT_EQ(status.error_code(), StatusCode::UNIMPLEMENTED);
  EXPECT_NE(status.error_message().find("trace"), std::string::npos);
  EXPECT_EQ(front_.refused, 1);
  EXPECT_EQ(front_.last_reason, EndReason::kUnsupported);
}

grpc::health::v1::HealthCheckRequest health_of(const std::string& service) {
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  return request;
}

TEST_F(GrpcServerTest, ChecksHealthOfServerAndModels) {
  using grpc::health::v1::HealthCheckResponse;
  const auto check = [&](const std::string& service) {
    grpc::ClientContext context;
    HealthCheckResponse response;
    const grpc::Status status = health_->Check(&context, health_of(service), &response);
    if (!status.ok()) return -static_cast<int>(status.error_code());
    return static_cast<int>(response.status());
  };
  EXPECT_EQ(check(""), HealthCheckResponse::SERVING);
  EXPECT_EQ(check("inference.GRPCInferenceService"), HealthCheckResponse::SERVING);
  EXPECT_EQ(check("m"), HealthCheckResponse::SERVING);
  EXPECT_EQ(check("unknown"), -static_cast<int>(StatusCode::NOT_FOUND));
  EXPECT_EQ(front_.refused, 1);
  front_.ready = false;
  EXPECT_EQ(check(""), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(check("m"), HealthCheckResponse::NOT_SERVING);
}

TEST_F(GrpcServerTest, WatchesHealth) {
  using grpc::health::v1::HealthCheckResponse;
  GrpcServerOptions often;
  often.watch_interval = Duration::ms(5);
  restart(often);
  grpc::ClientContext context;
  auto watch = health_->Watch(&context, health_of(""));
  HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  front_.ready = false;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  std::atomic<bool> drained{false};
  server_->drain(clock_.now() + Duration::s(10), [&] { drained = true; });
  EXPECT_FALSE(watch->Read(&response));  // a watcher does not hold the drain up
  EXPECT_EQ(watch->Finish().error_code(), StatusCode::UNAVAILABLE);
  EXPECT_TRUE(eventually([&] { return drained.load(); }));
}

// From its first moment: the start's own deadline is no reason to look later.
TEST_F(GrpcServerTest, CutsOffWhoSendsAMessageTooSlowly) {
  GrpcServerOptions quick;
  quick.body_window = Duration::ms(100);
  quick.start_timeout = Duration::s(60);
  restart(quick);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  grpc::GenericStub stub(channel_);
  grpc::CompletionQueue queue;
  const auto call =
      stub.PrepareCall(&context, "/inference.GRPCInferenceService/ModelInfer", &queue);
  const auto step = [&] {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
  };
  call->StartCall(nullptr);  // and never a message
  step();
  grpc::Status status;
  call->Finish(&status, nullptr);
  step();
  EXPECT_EQ(status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_NE(status.error_message().find("slowly"), std::string::npos) << status.error_message();
  EXPECT_EQ(server_->counters().timeouts, 1U);
}

TEST_F(GrpcServerTest, DrainsBounded) {
  grpc::ClientContext context;
  ModelInferResponse response;
  std::thread caller(
      [&] { EXPECT_FALSE(stub_->ModelInfer(&context, request("hang"), &response).ok()); });
  ASSERT_TRUE(eventually([&] { return front_.hung.load() == 1; }));
  std::atomic<bool> drained{false};
  server_->drain(clock_.now() + Duration::ms(100), [&] { drained = true; });
  EXPECT_TRUE(eventually([&] { return drained.load(); }));
  EXPECT_EQ(front_.cancelled.load(), 1);
  caller.join();
}

TEST_F(GrpcServerTest, AcceptsAgainAfterRunningOutOfDescriptors) {
  const auto live = [&] {
    grpc::ClientContext context;
    inference::ServerLiveResponse out;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    return stub_->ServerLive(&context, {}, &out).ok();
  };
  ASSERT_TRUE(live());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  rlimit low = before;
  low.rlim_cur = 3;  // existing descriptors stay
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  pollfd answer{client, POLLIN, 0};
  EXPECT_EQ(::poll(&answer, 1, 200), 0);  // no settings frame: nobody has accepted it
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(::poll(&answer, 1, 5000), 1);
  EXPECT_TRUE(live());
  ::close(client);
}

// Connections to this port leave descriptors for others.
TEST_F(GrpcServerTest, ConnectionsUseThreeQuartersOfTheDescriptorsAtMost) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<int> clients;
  for (int i = 0; i < 40; ++i) clients.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit low = before;
  low.rlim_cur = static_cast<rlim_t>(clients.back()) + 10;  // the next ones are in the last quarter
  ASSERT_GE(static_cast<rlim_t>(clients.back()), low.rlim_cur - low.rlim_cur / 4);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(clients[0], reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  char byte = 0;
  EXPECT_LE(::recv(clients[0], &byte, 1, 0), 0);  // closed, not served
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(server_->counters().refused, 1U);
  EXPECT_EQ(::connect(clients[1], reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::recv(clients[1], &byte, 1, 0), 1);  // its settings
  for (int client : clients) ::close(client);
}

TEST_F(GrpcServerTest, SaysWhyItCannotListen) {
  GrpcServerOptions options;
  options.port = port_;
  GrpcServer second(options, {{loop_.get(), &front_}}, clock_);
  EXPECT_NE(second.listen().error().find("in use"), std::string::npos);
}

std::string name_of(Code code) {
  static const std::map<Code, std::string> kNames = {
      {Code::kOk, "OK"},
      {Code::kInvalidArgument, "INVALID_ARGUMENT"},
      {Code::kResourceExhausted, "RESOURCE_EXHAUSTED"},
      {Code::kUnauthenticated, "UNAUTHENTICATED"},
      {Code::kNotFound, "NOT_FOUND"},
      {Code::kUnimplemented, "UNIMPLEMENTED"},
      {Code::kUnavailable, "UNAVAILABLE"},
      {Code::kDeadlineExceeded, "DEADLINE_EXCEEDED"},
      {Code::kCancelled, "CANCELLED"},
      {Code::kInternal, "INTERNAL"}};
  const auto found = kNames.find(code);
  return found == kNames.end() ? "" : found->second;
}

TEST(StatusCode, IsWhatTheReferenceSays) {
  for (int i = 0; i < kEndReasonCount; ++i) {
    const auto reason = static_cast<EndReason>(i);
    const std::string said(protocol::oip::grpc_status_text(reason));
    if (said.empty()) continue;  // does not occur
    const std::string plain = name_of(status_code(reason, false));
    const std::string late = name_of(status_code(reason, true));
    std::string both = plain;
    if (late != plain) both.append(", ").append(late);
    EXPECT_EQ(said, both) << end_reason_name(reason);
  }
}

}  // namespace
}  // namespace baton::adapters::grpc_api
