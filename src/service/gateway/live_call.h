#pragma once
// Internal to this room.

#include <memory>
#include <string>

#include "service/gateway/gateway.h"

namespace baton::service {

// One request from infer() to settle(). Lives in the gateway's table; the engine reports to it.
class Gateway::LiveCall final : public ports::EngineEvents {
 public:
  LiveCall(Gateway& gateway, uint64_t token, GatewaySink& sink)
      : gateway_(gateway), token(token), sink(sink) {}
  void on_end(ports::CallId, ports::EngineEnd end) override {
    gateway_.on_end(*this, std::move(end));
  }

  // What the access log needs even when the request never reached an engine.
  [[nodiscard]] const RequestContext& context() const {
    return request ? request->context : early_context;
  }

 private:
  Gateway& gateway_;

 public:
  const uint64_t token;
  GatewaySink& sink;
  std::shared_ptr<const InferRequest> request;  // null until it was started
  RequestContext early_context;                 // of a request that was not
  std::string model_name;
  ModelPtr model;  // null until found
  ports::CallId engine_call;
  Instant traced_from;  // when it was started; zero: it is not traced
  Instant queue_deadline = Instant::never();
  ports::TimerId timer = 0;
  bool reserved = false;
  bool decoding = false;     // from expect() to decoded()
  bool rendering = false;    // from a render() that takes longer to rendered()
  ports::EngineEnd outcome;  // meanwhile
  SideWork::Ticket work;     // of the job that copies tensors
};

}  // namespace baton::service
