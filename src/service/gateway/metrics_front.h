#pragma once

#include <functional>
#include <optional>

#include "ports/model_directory.h"
#include "protocol/http1/exchange.h"
#include "service/access/access_control.h"
#include "service/telemetry/telemetry.h"

namespace baton::service {

// The metrics port: GET /metrics, the health routes, and /models, which alone needs a key. Uses no
// worker's state, so that it is served by a loop of its own and a scrape never holds a request up.
class MetricsFront final : public protocol::http1::HttpHandler {
 public:
  // All arguments outlive the front; `process` is asked once a scrape, on the front's loop. A null
  // access control lets everybody in.
  MetricsFront(const ports::ModelDirectory& models, const Telemetry& telemetry,
               std::function<ProcessCounts()> process, const AccessControl* access)
      : models_(models), telemetry_(telemetry), process_(std::move(process)), access_(access) {}
  std::optional<protocol::http1::HttpResponse> on_head(const protocol::http1::HttpRequest& head,
                                                       std::optional<uint64_t> length) override;
  void on_request(protocol::http1::ExchangeId id, protocol::http1::HttpRequest request,
                  protocol::http1::HttpResponder& responder) override;
  void on_client_gone(protocol::http1::ExchangeId) override {}
  protocol::http1::HttpResponse render_codec_error(int status, std::string_view message) override;

 private:
  [[nodiscard]] protocol::http1::HttpResponse answer(
      const protocol::http1::HttpRequest& request) const;
  [[nodiscard]] std::optional<Refusal> refuse(const protocol::http1::HttpRequest& request) const;

  const ports::ModelDirectory& models_;
  const Telemetry& telemetry_;
  std::function<ProcessCounts()> process_;
  const AccessControl* access_;
};

}  // namespace baton::service
