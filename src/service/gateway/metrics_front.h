#pragma once

#include <functional>
#include <optional>

#include "ports/model_directory.h"
#include "protocol/http1/exchange.h"
#include "service/telemetry/telemetry.h"

namespace baton::service {

// The metrics port: GET /metrics, /models and the health routes. Uses no worker's state, so that it
// is served by a loop of its own and a scrape never holds a request up.
class MetricsFront final : public protocol::http1::HttpHandler {
 public:
  // All arguments outlive the front; `process` is asked once a scrape, on the front's loop.
  MetricsFront(const ports::ModelDirectory& models, const Telemetry& telemetry,
               std::function<ProcessCounts()> process)
      : models_(models), telemetry_(telemetry), process_(std::move(process)) {}
  std::optional<protocol::http1::HttpResponse> on_head(const protocol::http1::HttpRequest& head,
                                                       std::optional<uint64_t> length) override;
  void on_request(protocol::http1::ExchangeId id, protocol::http1::HttpRequest request,
                  protocol::http1::HttpResponder& responder) override;
  void on_client_gone(protocol::http1::ExchangeId) override {}
  protocol::http1::HttpResponse render_codec_error(int status, std::string_view message) override;

 private:
  [[nodiscard]] protocol::http1::HttpResponse answer(std::string_view path) const;

  const ports::ModelDirectory& models_;
  const Telemetry& telemetry_;
  std::function<ProcessCounts()> process_;
};

}  // namespace baton::service
