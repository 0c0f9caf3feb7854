#include "adapters/load/load.h"
#include "base/check.h"

#ifdef BATON_WITH_GRPC

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/bytes.h"
#include "baton_inference.grpc.pb.h"

namespace baton::adapters::load {
namespace {

using Stub = grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer>;

const std::string kInferMethod = "/inference.GRPCInferenceService/ModelInfer";

// Numbered, so that channels to one address do not share a connection.
std::shared_ptr<grpc::Channel> channel_to(const LoadTarget& target, int number) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt("baton.connection", number);
  arguments.SetMaxReceiveMessageSize(-1);
  const std::string address = target.host + ":" + std::to_string(target.port);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

grpc::ByteBuffer render(const LoadTarget& target, const InferRequest& request) {
  inference::ModelInferRequest message;
  message.set_model_name(target.model);
  for (const Tensor& tensor : request.inputs) {
    auto* input = message.add_inputs();
    input->set_name(tensor.name);
    input->set_datatype(std::string(data_type_name(tensor.type)));
    for (const int64_t dim : tensor.shape) input->add_shape(dim);
    message.add_raw_input_contents(std::string(as_chars(tensor.data)));
  }
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

std::string status_of(const grpc::Status& status, const grpc::ClientContext& context) {
  std::string text = "grpc " + std::to_string(status.error_code());
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto reason = trailers.find("baton-reason");
  if (reason == trailers.end()) return text;
  return text + " " + std::string(reason->second.data(), reason->second.size());
}

class GrpcLoad {
 public:
  GrpcLoad(const LoadTarget& target, const LoadPlan& plan, const ports::Clock& clock)
      : plan_(plan), clock_(clock), tally_(plan) {
    for (const auto& request : plan.requests) messages_.push_back(render(target, *request));
    for (size_t i = 0; i < plan.connections; ++i) {
      channels_.push_back(channel_to(target, static_cast<int>(i)));
      stubs_.push_back(std::make_unique<Stub>(channels_.back()));
    }
  }

  Result<LoadResult, std::string> run() {
    const auto patience = std::chrono::system_clock::now() + std::chrono::seconds(10);
    for (const auto& channel : channels_) {
      if (!channel->WaitForConnected(patience)) {
        return fail(std::string("no gRPC server answers there"));
      }
    }
    prctl(PR_SET_TIMERSLACK, 1UL);  // the default of 50 µs would be lateness
    start_ = clock_.now() + Duration::ms(1);
    for (const Duration intended : plan_.sends) {
      const Duration left = intended - now();
      if (left > Duration()) std::this_thread::sleep_for(std::chrono::nanoseconds(left.ns()));
      if (outstanding_.load() < plan_.outstanding_max) {
        send(intended);
      } else {
        const std::lock_guard lock(mutex_);
        tally_.failed(intended, "overflow");
      }
    }
    // Every call has a deadline, so this ends.
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return outstanding_.load() == 0; });
    return tally_.take();
  }

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer response;
    Duration intended;
  };

  [[nodiscard]] Duration now() const { return clock_.now() - start_; }

  void send(Duration intended) {
    auto* call = new Call;  // until on_end
    call->intended = intended;
    const auto left = (plan_.sends.back() - intended) + plan_.patience;
    call->context.set_deadline(std::chrono::system_clock::now() +
                               std::chrono::nanoseconds(left.ns()));
    ++outstanding_;
    {
      const std::lock_guard lock(mutex_);
      tally_.sent(intended, now());
    }
    const size_t turn = turn_++;
    stubs_[turn % stubs_.size()]->UnaryCall(
        &call->context, kInferMethod, {}, &messages_[turn % messages_.size()], &call->response,
        [this, call](const grpc::Status& status) { on_end(call, status); });
  }

  // On a thread of the library.
  void on_end(Call* call, const grpc::Status& status) {
    const Duration ended = now();
    const std::unique_ptr<Call> owned(call);
    const std::lock_guard lock(mutex_);
    if (status.ok()) {
      tally_.answered(call->intended, ended);
    } else {
      tally_.failed(call->intended, status_of(status, call->context));
    }
    if (--outstanding_ == 0) ended_.notify_all();
  }

  const LoadPlan& plan_;
  const ports::Clock& clock_;
  std::vector<grpc::ByteBuffer> messages_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::vector<std::unique_ptr<Stub>> stubs_;
  size_t turn_ = 0;
  Instant start_;
  std::atomic<size_t> outstanding_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  Tally tally_;  // under mutex_
};

}  // namespace

Result<std::vector<TensorSpec>, std::string> grpc_model_inputs(const LoadTarget& target) {
  const auto stub = inference::GRPCInferenceService::NewStub(channel_to(target, 0));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  inference::ModelMetadataRequest request;
  request.set_name(target.model);
  inference::ModelMetadataResponse response;
  const grpc::Status status = stub->ModelMetadata(&context, request, &response);
  if (!status.ok()) return fail("the model's metadata: " + status.error_message());
  std::vector<TensorSpec> inputs;
  for (const auto& input : response.inputs()) {
    const auto type = parse_data_type(input.datatype());
    if (!type) return fail("\"" + input.datatype() + "\" is no data type of the protocol");
    inputs.push_back({.name = input.name(),
                      .type = *type,
                      .dims = Shape(input.shape().begin(), input.shape().end())});
  }
  return inputs;
}

Result<LoadResult, std::string> run_grpc_load(const LoadTarget& target, const LoadPlan& plan,
                                              const ports::Clock& clock) {
  BATON_CHECK(!plan.requests.empty() && plan.connections > 0);
  return GrpcLoad(target, plan, clock).run();
}

}  // namespace baton::adapters::load

#else

namespace baton::adapters::load {

Result<std::vector<TensorSpec>, std::string> grpc_model_inputs(const LoadTarget&) {
  return fail(std::string("this build has no gRPC"));
}

Result<LoadResult, std::string> run_grpc_load(const LoadTarget&, const LoadPlan&,
                                              const ports::Clock&) {
  return fail(std::string("this build has no gRPC"));
}

}  // namespace baton::adapters::load

#endif
