#include "adapters/http/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "adapters/transport/loop_impl.h"
#include "base/bytes.h"

namespace baton::adapters::http {

using boost::asio::ip::tcp;
using protocol::http1::CodecError;
using protocol::http1::ExchangeId;
using protocol::http1::HttpRequest;
using protocol::http1::HttpResponse;
using protocol::http1::RequestParser;
using transport::Turn;

namespace {

constexpr int kReadsPerTurn = 16;  // then other connections get their turn
constexpr size_t kPiecesPerWrite = 64;
constexpr size_t kCopiedBytes = 2048;
constexpr uint64_t kLingerBytesMax = 256ULL << 20;

}  // namespace

Connection::Connection(ConnectionSet& owner, uint32_t slot, tcp::socket socket, std::string peer)
    : owner_(owner),
      slot_(slot),
      socket_(std::move(socket)),
      peer_(std::move(peer)),
      parser_(owner.options().limits) {}

void Connection::start() {
  now_ = owner_.now();
  wait_for_more();
  arm_read();
}

void Connection::start_refused() {
  now_ = owner_.now();
  refuse(503, "The server has reached its limit of " +
                  std::to_string(owner_.options().connections_max) +
                  " connections; try again later.");
}

// ---- reading

void Connection::arm_read() {
  if (read_armed_ || state_ == State::kClosed || end_of_input_) return;
  if (state_ != State::kLingering && !parser_.has_room()) return watch();
  read_armed_ = true;
  socket_.async_wait(tcp::socket::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       const Turn turn(self->owner_.loop());
                       self->read_armed_ = false;
                       if (!error) self->on_readable();
                     });
}

// A client that has sent all that may wait is not read from; that it goes is noticed all the same.
void Connection::watch() {
  if (watched_ || state_ != State::kWorking) return;
  watched_ = true;
  owner_.hang_ups().add(socket_.native_handle(), slot_);
}

void Connection::unwatch() {
  if (!watched_) return;
  watched_ = false;
  owner_.hang_ups().remove(socket_.native_handle());
}

void Connection::on_hang_up() {
  if (!watched_) return;
  now_ = owner_.now();
  on_broken();
}

void Connection::on_readable() {
  if (state_ == State::kClosed) return;
  now_ = owner_.now();
  if (state_ == State::kLingering) return drop_input();
  receive();
  if (state_ != State::kClosed) arm_read();
}

void Connection::receive() {
  for (int turn = 0; turn < kReadsPerTurn; ++turn) {
    const std::span<char> room = parser_.prepare();
    if (room.empty()) return;
    const bool idle = parser_.idle();
    const ssize_t count = ::recv(socket_.native_handle(), room.data(), room.size(), MSG_DONTWAIT);
    if (count == 0) return on_end_of_input();
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (count < 0) return on_broken();
    if (idle) first_byte_at_ = now_;
    parser_.commit(static_cast<size_t>(count));
    if (state_ == State::kReading) advance();
    if (state_ == State::kClosed || state_ == State::kLingering) return;
    if (static_cast<size_t>(count) < room.size()) return;
  }
}

void Connection::on_end_of_input() {
  end_of_input_ = true;
  if (state_ == State::kReading) return close();  // idle, or a request that never ends
  if (state_ == State::kWorking && !owner_.options().answer_half_closed) on_broken();
}

void Connection::on_broken() {
  if (state_ == State::kWorking) {
    // Closed first: what the handler answers now is ignored.
    close();
    owner_.handler().on_client_gone(exchange_);
    return;
  }
  close();
}

void Connection::advance() {
  advancing_ = true;
  while (state_ == State::kReading) {
    const RequestParser::Event event = parser_.next();
    if (event == RequestParser::Event::kNeedMore) break;
    if (event == RequestParser::Event::kHead) {
      handle_head();
    } else if (event == RequestParser::Event::kComplete) {
      dispatch();
    } else {
      const CodecError error = parser_.error();
      if (error.status != 503) owner_.count_bad_request();  // 503: this server's own limits
      refuse(error.status, error.message);
    }
  }
  advancing_ = false;
  if (state_ == State::kReading) wait_for_more();
}

// The parser needs bytes: says until when they must come.
void Connection::wait_for_more() {
  if (end_of_input_) return close();
  const HttpServerOptions& options = owner_.options();
  if (parser_.idle()) {
    parser_.shrink();
    const Duration patience = owner_.draining()
                                  ? std::min(options.drain_idle_grace, options.idle_timeout)
                                  : options.idle_timeout;
    return set_deadline(now_ + patience);
  }
  if (parser_.in_head()) return set_deadline(first_byte_at_ + options.head_timeout);
  count_body(parser_.body_received());
  if (state_ != State::kReading) return;
  const bool wants_continue = parser_.framing().expects_continue && !continue_sent_;
  if (wants_continue && parser_.body_received() == 0 && !parser_.has_leftover()) {
    if (!send_continue()) return close();
  }
}

void Connection::handle_head() {
  HttpRequest& head = parser_.head();
  head.arrival = first_byte_at_;
  head.peer = peer_;
  continue_sent_ = false;
  framing_ = {.keep_alive = parser_.framing().keep_alive,
              .head_request = head.method == "HEAD",
              .http_1_0 = parser_.framing().http_1_0};
  auto refusal = owner_.handler().on_head(head, parser_.framing().content_length);
  if (refusal.has_value()) {
    framing_.keep_alive = false;
    parser_.abandon();
    return send(*std::move(refusal), After::kLinger);
  }
  open_window(0, owner_.options().body_window);
}

// Bodies that arrive in one piece are never counted.
void Connection::count_body(uint64_t bytes) {
  if (bytes == counted_) return;
  const auto change = static_cast<int64_t>(bytes) - static_cast<int64_t>(counted_);
  counted_ = bytes;
  if (owner_.count_receiving(change) || change < 0) return;
  refuse(503, "The server is receiving as many bytes as it can hold; try again later.");
}

bool Connection::send_continue() {
  continue_sent_ = true;
  const std::string_view text = protocol::http1::kContinue;
  const ssize_t count =
      ::send(socket_.native_handle(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return count == static_cast<ssize_t>(text.size());
}

void Connection::dispatch() {
  exchange_ = owner_.next_exchange(slot_);
  HttpRequest request = parser_.take();
  if (parser_.has_leftover()) first_byte_at_ = now_;
  state_ = State::kWorking;
  count_body(0);
  set_deadline(Instant::never());
  owner_.handler().on_request(exchange_, std::move(request), owner_);
}

// ---- answering

void Connection::respond(ExchangeId id, HttpResponse response) {
  if (state_ != State::kWorking || id != exchange_) return;
  if (!advancing_) now_ = owner_.now();
  After after = framing_.keep_alive ? After::kNextRequest : After::kClose;
  if (framing_.keep_alive && (owner_.draining() || end_of_input_)) {
    framing_.keep_alive = false;
    after = After::kLinger;  // the client may be sending its next request at this moment
  }
  send(std::move(response), after);
}

void Connection::refuse(int status, std::string_view message) {
  framing_.keep_alive = false;
  framing_.head_request = parser_.head().method == "HEAD";
  HttpResponse response = owner_.handler().render_codec_error(status, message);
  count_body(0);
  parser_.abandon();
  send(std::move(response), After::kLinger);
}

void Connection::send(HttpResponse response, After after) {
  unwatch();
  out_.response = std::move(response);
  out_.head.clear();
  out_.pieces.clear();
  out_.next = 0;
  out_.after = after;
  written_ = 0;
  append_response_head(out_.head, out_.response, framing_);
  gather_pieces();
  state_ = State::kWriting;
  set_deadline(Instant::never());
  write();
}

// What is small is copied behind the head: one piece costs the kernel less than several.
void Connection::gather_pieces() {
  const HttpResponse& response = out_.response;
  const auto add = [this](const void* data, size_t size) {
    if (size > 0) out_.pieces.push_back({const_cast<void*>(data), size});
  };
  const bool sends = protocol::http1::sends_body(response.status, framing_.head_request);
  const bool copies = sends && protocol::http1::body_size(response) <= kCopiedBytes;
  if (copies) {
    out_.head += response.body;
    for (const auto& part : response.parts) out_.head += as_chars(part);
  }
  add(out_.head.data(), out_.head.size());
  if (!sends || copies) return;
  add(response.body.data(), response.body.size());
  for (const auto& part : response.parts) add(part.data(), part.size());
}

void Connection::write() {
  while (out_.next < out_.pieces.size()) {
    if (write_once()) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return close();
    if (deadline_.is_never()) open_window(written_, owner_.options().write_window);
    return arm_write();
  }
  on_written();
}

// False with errno when the socket takes no more.
bool Connection::write_once() {
  msghdr message{};
  message.msg_iov = &out_.pieces[out_.next];
  message.msg_iovlen = std::min(out_.pieces.size() - out_.next, kPiecesPerWrite);
  const ssize_t count = ::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count < 0) return errno == EINTR;
  auto left = static_cast<size_t>(count);
  written_ += left;
  while (out_.next < out_.pieces.size()) {
    iovec& piece = out_.pieces[out_.next];
    if (left < piece.iov_len) {
      piece.iov_base = static_cast<char*>(piece.iov_base) + left;
      piece.iov_len -= left;
      break;
    }
    left -= piece.iov_len;
    ++out_.next;
  }
  return true;
}

void Connection::arm_write() {
  socket_.async_wait(tcp::socket::wait_write,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       const Turn turn(self->owner_.loop());
                       if (error || self->state_ != State::kWriting) return;
                       self->now_ = self->owner_.now();
                       self->write();
                     });
}

void Connection::on_written() {
  out_.response = HttpResponse();  // lets go of what it kept alive
  switch (out_.after) {
    case After::kClose:
      return close();
    case After::kLinger:
      return linger();
    case After::kNextRequest:
      break;
  }
  state_ = State::kReading;
  if (advancing_) return;  // the loop in advance() goes on
  advance();
  if (state_ != State::kClosed) arm_read();
}

// ---- ending

// Sends the end of our side and drops what the client still sends: closing with unread bytes would
// reset the connection and take the answer away from the client.
void Connection::linger() {
  boost::system::error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  state_ = State::kLingering;
  dropped_ = 0;
  if (end_of_input_) return close();
  set_deadline(now_ + owner_.options().linger);
  arm_read();
}

void Connection::drop_input() {
  std::array<char, 16 * 1024> sink;
  for (int turn = 0; turn < kReadsPerTurn; ++turn) {
    const ssize_t count = ::recv(socket_.native_handle(), sink.data(), sink.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (count <= 0) return close();
    dropped_ += static_cast<uint64_t>(count);
    if (dropped_ > kLingerBytesMax) return close();
  }
  arm_read();
}

void Connection::close() {
  if (state_ == State::kClosed) return;
  unwatch();
  state_ = State::kClosed;
  count_body(0);
  owner_.loop().cancel(timer_);
  timer_ = 0;
  boost::system::error_code ignored;
  socket_.close(ignored);
  out_.response = HttpResponse();
  // The owner lets go of this object when the current event is over.
  owner_.release(slot_);
}

void Connection::on_drain() {
  if (state_ != State::kReading || !parser_.idle()) return;
  now_ = owner_.now();
  wait_for_more();
}

void Connection::cut_off() {
  on_broken();
}

// ---- time

// One timer a connection, moved only when the deadline becomes earlier: most deadlines are replaced
// before they come.
void Connection::set_deadline(Instant when) {
  deadline_ = when;
  if (when >= timer_at_) return;
  owner_.loop().cancel(timer_);
  timer_at_ = when;
  timer_ = owner_.loop().arm(when, [this] { on_timer(); });
}

void Connection::on_timer() {
  const auto self = shared_from_this();
  timer_ = 0;
  timer_at_ = Instant::never();
  now_ = owner_.now();
  if (now_ < deadline_) return set_deadline(deadline_);
  deadline_ = Instant::never();
  on_deadline();
}

void Connection::open_window(uint64_t done, Duration length) {
  window_start_ = done;
  set_deadline(now_ + length);
}

void Connection::on_deadline() {
  const HttpServerOptions& options = owner_.options();
  if (state_ == State::kReading && !parser_.idle()) {
    if (parser_.in_head()) {
      owner_.count_timeout();
      return refuse(408, "The request's head did not arrive in time.");
    }
    const uint64_t received = parser_.body_received();
    if (received - window_start_ >= options.body_window_bytes) {
      return open_window(received, options.body_window);
    }
    owner_.count_timeout();
    return refuse(408, "The request's body arrives too slowly.");
  }
  if (state_ == State::kWriting) {
    if (written_ - window_start_ >= options.write_window_bytes) {
      return open_window(written_, options.write_window);
    }
    owner_.count_write_stall();
  }
  if (state_ == State::kWriting) owner_.count_timeout();
  if (state_ != State::kWorking) close();
}

}  // namespace baton::adapters::http
