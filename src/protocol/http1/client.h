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

#include "protocol/http1/exchange.h"
#include "protocol/http1/message_parser.h"

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

// The responses of one connection; prepare() always has room while next() needs more.
class ResponseParser final : public MessageParser {
 public:
  explicit ResponseParser(const ResponseLimits& limits = {});

  // Before each response: whether it answers HEAD.
  void expect(bool head_request) { head_request_ = head_request; }
  // The server has closed its side.
  [[nodiscard]] Event end();
  [[nodiscard]] ClientResponse take();
  [[nodiscard]] const std::string& error() const { return error_; }
  // Bytes that no request asked for, or the start of a response.
  [[nodiscard]] bool idle() const { return state_ == State::kHead && input_.empty(); }

 private:
  Event next_head() override;
  Event next_body() override;
  Event parse_head(size_t bytes);
  Event complete();
  Event refuse(std::string message);
  [[nodiscard]] bool start_body();

  ResponseLimits limits_;
  ClientResponse response_;
  bool head_request_ = false;
  std::string error_;
};

}  // namespace baton::protocol::http1
