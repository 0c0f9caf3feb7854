#pragma once
// One HTTP/1.1 exchange as values: what a front end receives and what it answers. The codec makes
// and renders these; the server in adapters/http moves them; service/gateway handles them. None of
// them knows sockets.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/static_text.h"
#include "base/time.h"

namespace baton::protocol::http1 {

// A header that is to be sent.
struct Header {
  StaticText name;
  std::string value;
};

// A header of a request: views into the request's head_storage.
struct HeaderView {
  std::string_view name;  // lower case
  std::string_view value;
};

// Bytes readable behind the end of every request body: JSON parsers read in wide steps.
inline constexpr size_t kBodyPadding = 64;

// All views stay valid as long as a copy of the request, or of head_storage and body_storage,
// lives.
struct HttpRequest {
  std::string_view method;  // as sent
  std::string_view target;  // path and query as sent; "*" only for OPTIONS
  std::vector<HeaderView> headers;
  std::shared_ptr<const void> head_storage;  // keeps method, target and headers alive
  std::string_view body;  // decoded from chunks; kBodyPadding zero bytes behind it may be read
  std::shared_ptr<const void>
      body_storage;  // keeps `body` alive, beyond the exchange if need be; null: no body
  Instant arrival;   // when the first byte of the request was read
  std::string peer;  // address without the port

  // The first value of a header, name in lower case; nothing when absent.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const {
    for (const HeaderView& entry : headers) {
      if (entry.name == name) return entry.value;
    }
    return std::nullopt;
  }
};

// The server adds Content-Length, Date-free framing and Connection. `body` goes out first, then the
// parts, in one gathered write without copying what is large.
struct HttpResponse {
  int status = 200;
  StaticText content_type;  // empty: no Content-Type header
  std::vector<Header> headers;
  std::string body;
  std::vector<std::span<const std::byte>> parts;
  std::vector<std::shared_ptr<const void>> storage;  // keeps the parts alive
};

// A refusal by the codec: what was wrong in one sentence for the client.
struct CodecError {
  int status = 400;
  std::string message;
};

using ExchangeId = Id<struct ExchangeTag>;  // unique within the process

// Where a handler sends its one answer.
class HttpResponder {
 public:
  virtual ~HttpResponder() = default;
  // On the worker of the exchange; ignored when the client has gone or the exchange was answered.
  virtual void respond(ExchangeId id, HttpResponse response) = 0;
};

// What handles the exchanges of one worker. All calls arrive on that worker.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // The head has arrived and the body has not (body empty). A response refuses the request: it is
  // sent without reading the body, then the connection is closed. Also the moment before 100
  // Continue is sent.
  virtual std::optional<HttpResponse> on_head(const HttpRequest& head,
                                              std::optional<uint64_t> content_length) = 0;
  // The whole request. Answered now or later, once, through `responder`, which outlives the
  // exchange.
  virtual void on_request(ExchangeId id, HttpRequest request, HttpResponder& responder) = 0;
  // The client closed before the answer: no answer is needed any more. At most once, never after
  // the answer was sent.
  virtual void on_client_gone(ExchangeId id) = 0;
  // The answer to a request that the codec refused; the exchange never reaches on_request.
  virtual HttpResponse render_codec_error(int status, std::string_view message) = 0;
};

}  // namespace baton::protocol::http1
