#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "ports/clock.h"
#include "protocol/http1/exchange.h"
#include "protocol/json/reader.h"
#include "protocol/oip/route.h"
#include "service/access/access_control.h"
#include "service/gateway/gateway.h"

namespace baton::service {

// The Open Inference Protocol over HTTP for one worker: exchanges in, typed requests to the
// gateway, answers out.
class HttpFront final : public protocol::http1::HttpHandler {
 public:
  // All arguments outlive the front. A null access control lets everybody in.
  HttpFront(Gateway& gateway, const ports::Clock& clock, Telemetry& telemetry,
            const AccessControl* access);
  ~HttpFront() override;

  std::optional<protocol::http1::HttpResponse> on_head(
      const protocol::http1::HttpRequest& head, std::optional<uint64_t> content_length) override;
  void on_request(protocol::http1::ExchangeId id, protocol::http1::HttpRequest request,
                  protocol::http1::HttpResponder& responder) override;
  void on_client_gone(protocol::http1::ExchangeId id) override;
  protocol::http1::HttpResponse render_codec_error(int status, std::string_view message) override;

 private:
  class Call;
  using Responder = protocol::http1::HttpResponder;

  [[nodiscard]] RequestContext context_of(const protocol::http1::HttpRequest& request) const;
  [[nodiscard]] Result<protocol::http1::HttpResponse, Refusal> answer_query(
      const protocol::oip::Route& route);
  [[nodiscard]] Result<protocol::http1::HttpResponse, Refusal> model_query(
      const protocol::oip::Route& route);
  [[nodiscard]] protocol::http1::HttpResponse readiness();
  void infer(protocol::http1::ExchangeId id, const protocol::http1::HttpRequest& request,
             const protocol::oip::Route& route, Responder& responder);
  void finish(Call& call, GatewayAnswer answer);

  Gateway& gateway_;
  const ports::Clock& clock_;
  WorkerCells& cells_;
  const AccessControl* access_;
  protocol::json::JsonParser parser_;
  std::unordered_map<uint64_t, std::unique_ptr<Call>> calls_;  // by exchange; never iterated
};

}  // namespace baton::service
