#pragma once

#include <optional>
#include <span>

#include "protocol/http1/exchange.h"
#include "protocol/http1/message_parser.h"
#include "protocol/http1/request_head.h"

namespace baton::protocol::http1 {

// The requests of one connection.
class RequestParser final : public MessageParser {
 public:
  // Limits of lines and trailers are cut down to head_bytes, which bounds the buffer.
  explicit RequestParser(const RequestLimits& limits);

  // From kHead to take(). The caller may set arrival and peer.
  [[nodiscard]] HttpRequest& head() { return request_; }
  [[nodiscard]] const RequestFraming& framing() const { return framing_; }
  [[nodiscard]] HttpRequest take();
  [[nodiscard]] const CodecError& error() const { return error_; }

  // Neither a head nor a part of one was received since the last request.
  [[nodiscard]] bool idle() const { return state_ == State::kHead && input_.empty(); }
  [[nodiscard]] bool in_head() const { return state_ == State::kHead; }
  [[nodiscard]] bool in_body() const { return state_ == State::kBody; }
  // Whether prepare() has room to give.
  [[nodiscard]] bool has_room() const { return input_.size() < limits_.head_bytes; }
  [[nodiscard]] bool has_leftover() const { return !input_.empty(); }
  [[nodiscard]] uint64_t body_received() const { return body_.received(); }
  // No further event is asked for: gives all memory back.
  void abandon();
  // Gives memory back that an idle connection does not need.
  void shrink() { input_.shrink(); }

 private:
  Event next_head() override;
  Event next_body() override;
  Event parse_head(size_t bytes);
  Event refuse(CodecError error);
  bool skip_empty_lines();

  RequestLimits limits_;
  size_t empty_lines_ = 0;
  HttpRequest request_;
  RequestFraming framing_;
  CodecError error_;
};

}  // namespace baton::protocol::http1
