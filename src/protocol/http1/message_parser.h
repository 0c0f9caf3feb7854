#pragma once
// What parsing requests and responses has in common.

#include <cstddef>
#include <span>

#include "protocol/http1/body_reader.h"
#include "protocol/http1/fields.h"
#include "protocol/http1/input_buffer.h"

namespace baton::protocol::http1 {

// Turns the bytes of one connection into messages, one after the other: a head, then its body.
// Knows no sockets and no clock. What next() says does not depend on how the bytes were cut into
// pieces.
class MessageParser {
 public:
  enum class Event {
    kNeedMore,  // commit() more bytes
    kHead,      // of a request: head() is complete, the body is not looked at yet
    kContinue,  // of a response: 100 Continue; other interim responses are skipped
    kComplete,  // take() the message
    kRefused,   // error() says why; the connection cannot be used further
  };

  // Where to read the next bytes to: the body itself when much of it is missing. Valid until the
  // next call of any method but commit(). Empty when a complete message waits and the room for
  // bytes behind it is full.
  [[nodiscard]] std::span<char> prepare();
  void commit(size_t bytes);
  // The next event; kNeedMore until more bytes are committed.
  [[nodiscard]] Event next();

 protected:
  enum class State { kHead, kBody, kComplete, kRefused };

  explicit MessageParser(size_t head_bytes) : input_(head_bytes) {}
  ~MessageParser() = default;
  MessageParser(MessageParser&&) = default;
  MessageParser& operator=(MessageParser&&) = default;

  State state_ = State::kHead;
  InputBuffer input_;
  HeadScanner scanner_;
  BodyReader body_;

 private:
  virtual Event next_head() = 0;
  virtual Event next_body() = 0;
  bool direct_ = false;  // prepare() gave the body's room
};

}  // namespace baton::protocol::http1
