#pragma once
// The client's side of HTTP/1.1, for `baton bench`, health probes and tests: requests to bytes,
// bytes to responses.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/http1/body_reader.h"
#include "protocol/http1/exchange.h"
#include "protocol/http1/fields.h"
#include "protocol/http1/input_buffer.h"

namespace baton::protocol::http1 {

struct ClientRequestHead {
  std::string_view method = "GET";
  std::string_view target = "/";
  std::string_view host;  // with the port
  std::span<const Header> headers;
  std::optional<uint64_t> content_length;  // absent: no body
};

// Appends the head; the body is the caller's to send behind it. The caller's values hold no control
// characters.
void append_request_head(std::string& out, const ClientRequestHead& head);

struct ClientResponse {
  int status = 0;
  std::vector<HeaderView> headers;
  std::string_view body;  // kBodyPadding bytes behind it may be read
  std::shared_ptr<const void> head_storage;
  std::shared_ptr<const void> body_storage;
  bool keep_alive = true;  // false: the connection ends with this response

  [[nodiscard]] std::optional<std::string_view> header(std::string_view lower_name) const;
};

struct ResponseLimits {
  size_t head_bytes = 64 * 1024;
  size_t headers = 200;
  uint64_t body_bytes = 1ULL << 30;
};

// Turns the bytes of one connection into responses. Knows no sockets and no clock.
class ResponseParser {
 public:
  enum class Event {
    kNeedMore,
    kContinue,  // 100 Continue; other interim responses are skipped
    kComplete,  // take() the response
    kRefused,   // error() says why; the connection cannot be used further
  };

  explicit ResponseParser(const ResponseLimits& limits = {});

  // Before each response: whether it answers HEAD.
  void expect(bool head_request) { head_request_ = head_request; }
  [[nodiscard]] std::span<char> prepare();  // never empty while next() needs more
  void commit(size_t bytes);
  [[nodiscard]] Event next();
  // The server has closed its side.
  [[nodiscard]] Event end();
  [[nodiscard]] ClientResponse take();
  [[nodiscard]] const std::string& error() const { return error_; }
  // Bytes that no request asked for, or the start of a response.
  [[nodiscard]] bool idle() const { return state_ == State::kHead && input_.empty(); }

 private:
  enum class State { kHead, kBody, kComplete, kRefused };
  Event next_head();
  Event parse_head(size_t bytes);
  Event next_body();
  Event complete();
  Event refuse(std::string message);
  [[nodiscard]] bool start_body();

  ResponseLimits limits_;
  State state_ = State::kHead;
  InputBuffer input_;
  HeadScanner scanner_;
  ClientResponse response_;
  BodyReader body_;
  bool head_request_ = false;
  bool direct_ = false;
  std::string error_;
};

}  // namespace baton::protocol::http1
