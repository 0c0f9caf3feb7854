#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "ports/clock.h"
#include "ports/executor.h"
#include "ports/job_runner.h"
#include "protocol/compression/encoding.h"
#include "protocol/http1/exchange.h"
#include "protocol/json/reader.h"
#include "protocol/oip/header_memo.h"
#include "protocol/oip/infer_codec.h"
#include "protocol/oip/route.h"
#include "service/access/access_control.h"
#include "service/gateway/gateway.h"
#include "service/gateway/repository_front.h"
#include "service/gateway/side_work.h"

namespace baton::service {

// JSON above these sizes is read and written by jobs: in about a millisecond of the loop, 256 KiB
// of text are read or 64 KiB of tensors are written.
inline constexpr uint64_t kMostJsonOnLoop = 256 << 10;
inline constexpr uint64_t kMostTensorsOnLoop = 64 << 10;
// A compressed body is expanded on the loop when it and what it becomes are within these: a
// millisecond at 3 ns a byte. A larger one is expanded by the job that reads it.
inline constexpr uint64_t kMostPackedOnLoop = 64 << 10;
inline constexpr uint64_t kMostExpandedOnLoop = 256 << 10;
// Answers from this size on are compressed for clients that accept it. Below, they fit into one
// packet of an Ethernet either way; above, 10 ns a byte pay where the path to the client carries
// less than about 50 MB/s, which the client knows and asks for.
inline constexpr uint64_t kLeastCompressedAnswer = 1400;
// Smaller answers fit into the sockets' own buffers: only larger ones are held against
// limits.answer_bytes.
inline constexpr uint64_t kMostUncountedAnswer = 64 << 10;
// A tensor and its JSON text take this many times the tensor's bytes: until the text is there, an
// answer that a job writes is held at that.
inline constexpr uint64_t kJsonGrowth = 4;

// What an HttpFront works with. All outlive it.
struct HttpFrontPorts {
  Gateway& gateway;
  const ports::Clock& clock;
  Telemetry& telemetry;
  ports::Executor& loop;
  const AccessControl* access = nullptr;  // null lets everybody in
  // Each null: that JSON is read or written on the loop. Two, so that answers, which free memory,
  // do not wait behind requests, which take it.
  ports::JobRunner* readers = nullptr;
  ports::JobRunner* writers = nullptr;
  uint64_t body_bytes_max = 64ULL << 20;            // what a compressed body may become
  ports::RepositoryControl* repository = nullptr;   // null: not offered
  const HeaderPatterns* forward_headers = nullptr;  // null: none
};

// The Open Inference Protocol over HTTP for one worker: exchanges in, typed requests to the
// gateway, answers out.
class HttpFront final : public protocol::http1::HttpHandler {
 public:
  explicit HttpFront(const HttpFrontPorts& ports);
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
  struct PackedRequest {
    protocol::http1::HttpRequest request;
    protocol::compression::Encoding encoding;  // that its body still has
  };

  // A client asks for the same again and again, and each request's line is read twice: at its head
  // and with its body.
  struct LastRoute {
    std::string method;
    std::string target;
    protocol::oip::Route route;
  };

  [[nodiscard]] Result<protocol::oip::Route, Refusal> route_of(
      const protocol::http1::HttpRequest& request);
  [[nodiscard]] RequestContext context_of(const protocol::http1::HttpRequest& request) const;
  [[nodiscard]] Result<protocol::http1::HttpResponse, Refusal> answer_query(
      const protocol::oip::Route& route);
  [[nodiscard]] Result<protocol::http1::HttpResponse, Refusal> model_query(
      const protocol::oip::Route& route);
  [[nodiscard]] protocol::http1::HttpResponse readiness();
  void infer(protocol::http1::ExchangeId id, protocol::http1::HttpRequest request,
             const protocol::oip::Route& route, Responder& responder);
  // Expands and reads a body that is too large for the loop. Error: the gateway does not admit it.
  std::optional<Refusal> decode_by_job(Call& call, PackedRequest packed, RequestContext& context,
                                       const protocol::oip::Route& route);
  // False: it is the job's to expand.
  [[nodiscard]] Result<bool, Refusal> expand_on_loop(
      protocol::http1::HttpRequest& request, protocol::compression::Encoding encoding) const;
  void finish(Call& call, GatewayAnswer answer);

  Gateway& gateway_;
  const ports::Clock& clock_;
  WorkerCells& cells_;
  const AccessControl* access_;
  SideWork reading_;
  SideWork writing_;
  const uint64_t body_bytes_max_;
  const HeaderPatterns* forward_headers_;  // null: none
  RepositoryFront repository_;
  protocol::json::JsonParser parser_;
  protocol::oip::HeaderMemo headers_;
  LastRoute last_route_;
  std::unordered_map<uint64_t, std::unique_ptr<Call>> calls_;  // by exchange; never iterated
};

}  // namespace baton::service
