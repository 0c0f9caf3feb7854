#pragma once

#include <memory>
#include <unordered_map>

#include "ports/inference_front.h"
#include "service/access/access_control.h"
#include "service/gateway/gateway.h"

namespace baton::service {

// What protocols with typed messages ask of one worker: authentication in front of its gateway.
class TypedFront final : public ports::InferenceFront {
 public:
  // All arguments outlive the front. A null access control lets everybody in; without a control of
  // the repository that extension is not offered.
  TypedFront(Gateway& gateway, const AccessControl* access,
             ports::RepositoryControl* repository = nullptr);
  ~TypedFront() override;

  ports::InferToken infer(const ports::Caller& caller, std::shared_ptr<InferRequest> request,
                          ports::InferSink sink) override;
  void cancel(ports::InferToken token) override;
  void count_refused(const ports::Caller& caller, RequestContext context, std::string_view model,
                     const Refusal& refusal) override;
  [[nodiscard]] std::optional<Refusal> refuse_caller(const ports::Caller& caller) const override;
  bool server_ready() override;
  ports::ServerDescription server() override;
  ports::ModelReadiness model_ready(std::string_view model,
                                    std::optional<int64_t> version) override;
  Result<ports::ModelDescription, Refusal> model(std::string_view model,
                                                 std::optional<int64_t> version) override;
  ports::RepositoryControl* repository() override { return repository_; }
  Result<std::string, Refusal> model_config(std::string_view model,
                                            std::optional<int64_t> version) override;
  Result<std::vector<ModelStatistics>, Refusal> statistics(std::string_view model,
                                                           std::optional<int64_t> version) override;
  ports::SharedMemory* shared_memory() override { return gateway_.shared_memory(); }
  ports::LogControl* log_control() override { return gateway_.log_control(); }
  ports::TraceControl* trace_control() override { return gateway_.traces(); }

 private:
  class Call;
  // Whose spending the caller's is; without keys what it says itself.
  void set_tenant(const ports::Caller& caller, RequestContext& context) const;
  Result<ModelView, Refusal> ready_view(std::string_view model, std::optional<int64_t> version);

  Gateway& gateway_;
  const AccessControl* access_;
  ports::RepositoryControl* repository_;
  std::unordered_map<uint64_t, std::unique_ptr<Call>> calls_;  // by token; never iterated
};

}  // namespace baton::service
