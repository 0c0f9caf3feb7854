#pragma once

#include <optional>
#include <span>

#include "protocol/http1/body_reader.h"
#include "protocol/http1/exchange.h"
#include "protocol/http1/fields.h"
#include "protocol/http1/input_buffer.h"
#include "protocol/http1/request_head.h"

namespace baton::protocol::http1 {

// Turns the bytes of one connection into requests, one after the other. Knows no sockets and no
// clock. What next() says does not depend on how the bytes were cut into pieces.
class RequestParser {
 public:
  enum class Event {
    kNeedMore,
    kHead,      // head() is complete, the body is not looked at yet
    kComplete,  // take() the request
    kRefused,   // error() says why; the connection cannot be used further
  };

  // Limits of lines and trailers are cut down to head_bytes, which bounds the buffer.
  explicit RequestParser(const RequestLimits& limits);

  // Where to read the next bytes to: the body itself when much of it is missing. Valid until the
  // next call of any method but commit(). Empty when a complete request waits and the room for
  // bytes behind it is full.
  [[nodiscard]] std::span<char> prepare();
  void commit(size_t bytes);
  // The next event; kNeedMore until more bytes are committed.
  [[nodiscard]] Event next();

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
  enum class State { kHead, kBody, kComplete, kRefused };
  Event next_head();
  Event parse_head(size_t bytes);
  Event next_body();
  Event refuse(CodecError error);
  bool skip_empty_lines();

  RequestLimits limits_;
  State state_ = State::kHead;
  InputBuffer input_;
  HeadScanner scanner_;
  size_t empty_lines_ = 0;
  HttpRequest request_;
  RequestFraming framing_;
  BodyReader body_;
  bool direct_ = false;  // prepare() gave the body's room
  CodecError error_;
};

}  // namespace baton::protocol::http1
