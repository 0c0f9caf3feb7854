#pragma once
// For tests of this room: a server on its own loop with a scripted front, and the library's
// clients.

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "adapters/grpc/grpc_server.h"
#include "adapters/transport/steady_clock.h"
#include "baton_inference.grpc.pb.h"
#include "health.grpc.pb.h"

namespace baton::adapters::grpc_api {

using inference::ModelInferRequest;
using inference::ModelInferResponse;

// Echoes inputs as outputs; the model "hang" answers only when cancelled, a model named after an
// end reason is refused for it.
class FakeFront final : public ports::InferenceFront {
 public:
  ports::InferToken infer(const ports::Caller& caller, std::shared_ptr<InferRequest> request,
                          ports::InferSink sink) override {
    last_caller = caller;
    last_context = request->context;
    if (request->model == "hang") {
      const ports::InferToken token(++last_token_);
      hanging_.emplace(token.value(), std::move(sink));
      ++hung;
      return token;
    }
    for (int i = 1; i < kEndReasonCount; ++i) {
      const auto reason = static_cast<EndReason>(i);
      if (request->model != end_reason_name(reason)) continue;
      sink(fail(Refusal{reason, "refused: " + request->model, Duration::ms(1500)}));
      return {};
    }
    ports::InferAnswer answer{request->model, request->version.value_or(1), {}};
    answer.result.outputs = request->inputs;
    answer.result.storage.push_back(request);
    sink(std::move(answer));
    return {};
  }
  void cancel(ports::InferToken token) override {
    const auto found = hanging_.find(token.value());
    if (found == hanging_.end()) return;
    auto sink = std::move(found->second);
    hanging_.erase(found);
    ++cancelled;
    sink(fail(Refusal{EndReason::kClientGone, "gone", {}}));
  }
  void count_refused(const ports::Caller& caller, RequestContext context, std::string_view,
                     const Refusal& refusal) override {
    last_caller = caller;
    last_context = std::move(context);
    last_reason = refusal.reason;
    ++refused;
  }
  [[nodiscard]] std::optional<Refusal> refuse_caller(const ports::Caller& caller) const override {
    if (key.empty() || caller.authorization == "Bearer " + key) return std::nullopt;
    return Refusal{EndReason::kUnauthorized, "no key", {}};
  }
  bool server_ready() override { return ready; }
  ports::ServerDescription server() override { return {"baton", "1", {"binary_tensor_data"}}; }
  ports::ModelReadiness model_ready(std::string_view model, std::optional<int64_t>) override {
    return {model == "m", ready, ""};
  }
  Result<ports::ModelDescription, Refusal> model(std::string_view name,
                                                 std::optional<int64_t>) override {
    if (name != "m") return fail(Refusal{EndReason::kNotFound, "no such model", {}});
    TensorSpec input;
    input.name = "x";
    input.type = DataType::kBf16;
    input.dims = {-1, 3};
    return ports::ModelDescription{"m", {"1", "2"}, "onnxruntime_onnx", {input}, {}};
  }
  ports::RepositoryControl* repository() override { return nullptr; }
  Result<std::string, Refusal> model_config(std::string_view, std::optional<int64_t>) override {
    inference::ModelConfig config;
    config.set_name("m");
    config.set_max_batch_size(8);
    return config.SerializeAsString();
  }
  Result<std::vector<ModelStatistics>, Refusal> statistics(std::string_view name,
                                                           std::optional<int64_t>) override {
    return std::vector{ModelStatistics{.model = std::string(name), .version = 2}};
  }
  ports::SharedMemory* shared_memory() override { return nullptr; }
  ports::LogControl* log_control() override { return nullptr; }
  ports::TraceControl* trace_control() override { return nullptr; }

  std::string key;  // empty: everybody is let in
  std::atomic<bool> ready{true};
  std::atomic<int> hung{0};
  std::atomic<int> cancelled{0};
  std::atomic<int> refused{0};
  EndReason last_reason = EndReason::kOk;  // of what was refused
  ports::Caller last_caller;
  RequestContext last_context;

 private:
  uint64_t last_token_ = 0;
  std::map<uint64_t, ports::InferSink> hanging_;
};

// Runs jobs when the test says so. Any thread.
class HeldJobs final : public ports::JobRunner {
 public:
  void run(Job job) override {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  [[nodiscard]] size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return jobs_.size();
  }
  void run_all() {
    std::vector<Job> jobs;
    {
      const std::lock_guard lock(mutex_);
      jobs.swap(jobs_);
    }
    Uncancelled never;
    for (Job& job : jobs) job(never);
  }

 private:
  class Uncancelled final : public ports::Cancellation {
   public:
    [[nodiscard]] bool requested() const override { return false; }
    void run(FunctionRef<void()> work, FunctionRef<void()>) override { work(); }
  };
  mutable std::mutex mutex_;
  std::vector<Job> jobs_;
};

class GrpcServerTest : public ::testing::Test {
 protected:
  GrpcServerTest() { start({}); }
  ~GrpcServerTest() override { stop(); }

  void start(GrpcServerOptions options) {
    loop_ = std::make_unique<transport::WorkerLoop>();
    server_ = std::make_unique<GrpcServer>(
        options, std::vector<GrpcWorker>{{loop_.get(), &front_, readers_}}, clock_);
    const auto port = server_->listen();
    ASSERT_TRUE(port.has_value()) << port.error();
    port_ = *port;
    thread_ = std::thread([this] { loop_->run(); });
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(-1);
    channel_ = grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port_),
                                         grpc::InsecureChannelCredentials(), arguments);
    stub_ = inference::GRPCInferenceService::NewStub(channel_);
    health_ = grpc::health::v1::Health::NewStub(channel_);
  }
  void stop() {
    loop_->stop();
    if (thread_.joinable()) thread_.join();
    server_.reset();
    loop_.reset();
  }
  void restart(GrpcServerOptions options) {
    stop();
    start(options);
  }

  static ModelInferRequest request(const std::string& model, std::string bytes = "12345678") {
    ModelInferRequest message;
    message.set_model_name(model);
    auto* input = message.add_inputs();
    input->set_name("x");
    input->set_datatype("UINT8");
    input->add_shape(static_cast<int64_t>(bytes.size()));
    message.add_raw_input_contents(std::move(bytes));
    return message;
  }
  static bool eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 2500 && !condition(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return condition();
  }
  void on_worker(std::move_only_function<void()> action) {
    std::atomic<bool> done{false};
    loop_->post([&] {
      action();
      done = true;
    });
    eventually([&] { return done.load(); });
  }

  transport::SteadyClock clock_;
  FakeFront front_;
  HeldJobs jobs_;
  ports::JobRunner* readers_ = nullptr;
  std::unique_ptr<transport::WorkerLoop> loop_;
  std::unique_ptr<GrpcServer> server_;
  uint16_t port_ = 0;
  std::thread thread_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

}  // namespace baton::adapters::grpc_api
