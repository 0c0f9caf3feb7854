#include "protocol/http1/message_parser.h"

namespace baton::protocol::http1 {

std::span<char> MessageParser::prepare() {
  std::span<char> room;
  if (state_ == State::kBody) room = body_.prepare(input_);
  direct_ = !room.empty();
  return direct_ ? room : input_.room();
}

void MessageParser::commit(size_t bytes) {
  if (direct_) {
    body_.commit(bytes);
  } else {
    input_.commit(bytes);
  }
}

MessageParser::Event MessageParser::next() {
  switch (state_) {
    case State::kHead:
      return next_head();
    case State::kBody:
      return next_body();
    case State::kComplete:
      return Event::kComplete;
    case State::kRefused:
      break;
  }
  return Event::kRefused;
}

}  // namespace baton::protocol::http1
