#include "adapters/grpc/connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "adapters/transport/loop_impl.h"

namespace baton::adapters::grpc_api {

using boost::asio::ip::tcp;
using protocol::grpc_wire::ServerSession;
using protocol::grpc_wire::SessionOptions;
using transport::Turn;

namespace {

constexpr int kReadsPerTurn = 4;  // then other connections get their turn
constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kPiecesPerWrite = 64;
constexpr size_t kMostFramed = 256 << 10;
constexpr size_t kMostSmallBytes = 64 << 10;  // of a message that holds a name and a version
constexpr size_t kCountedFrom = 64 << 10;     // less on a connection is not worth a count
constexpr size_t kCountedAhead = 256 << 10;

// One read's bytes; what is kept of them is copied.
thread_local std::array<char, kReadBytes> read_buffer;

size_t message_limit(const ServerState& server, std::string_view path) {
  const auto found = server.methods.offered.find(path);
  const bool large = found != server.methods.offered.end() && found->second.large;
  return large ? server.options.message_bytes_max : kMostSmallBytes;
}

SessionOptions session_options(const ServerState& server) {
  SessionOptions options;
  options.streams_max = server.options.streams_max;
  options.metadata_bytes_max = server.options.metadata_bytes_max;
  options.encodings = offered_encodings();
  options.message_limit = [&server](std::string_view path) { return message_limit(server, path); };
  return options;
}

void count(std::atomic<uint64_t>& counter) {
  counter.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Connection::Connection(ConnectionSet& owner, tcp::socket socket, std::string peer)
    : owner_(owner),
      socket_(std::move(socket)),
      peer_(std::move(peer)),
      session_(session_options(owner.server())) {}

Connection::~Connection() = default;

void Connection::start() {
  now_ = owner_.now();
  end_at_ = now_ + owner_.server().options.start_timeout;
  arm_timer(end_at_);
  flush();  // our settings
  if (state_ == State::kServing) arm_read();
}

// ---- reading

void Connection::arm_read() {
  socket_.async_wait(tcp::socket::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       const Turn turn(self->owner_.loop());
                       if (!error) self->on_readable();
                     });
}

void Connection::on_readable() {
  if (state_ == State::kClosed) return;
  now_ = owner_.now();
  if (state_ == State::kLingering) {
    drop_input();
  } else {
    busy_ = true;
    receive();
    busy_ = false;
    if (state_ == State::kServing) flush();
  }
  if (state_ != State::kClosed) arm_read();
}

void Connection::receive() {
  for (int turn = 0; turn < kReadsPerTurn && state_ == State::kServing; ++turn) {
    const ssize_t size =
        ::recv(socket_.native_handle(), read_buffer.data(), read_buffer.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (size <= 0) return close();
    const auto bytes = std::span<const char>(read_buffer).first(static_cast<size_t>(size));
    if (!session_.receive(bytes)) {
      count(owner_.server().bad_requests);
      return linger();
    }
    count_receiving();
    take_events();
    if (bytes.size() < read_buffer.size()) return;
  }
}

// Bytes of incomplete messages, counted in steps.
void Connection::count_receiving() {
  const size_t partial = session_.partial_bytes();
  if (partial <= kCountedFrom) {
    receiving_ = nullptr;
    receiving_bytes_ = 0;
    return;
  }
  if (partial <= receiving_bytes_) return;
  receiving_ = nullptr;
  receiving_bytes_ = partial + kCountedAhead;
  receiving_ = owner_.server().receiving->lend(receiving_bytes_);
  if (receiving_ != nullptr) return;
  receiving_bytes_ = 0;
  session_.fault_partial({EndReason::kOverloaded,
                          "the server is receiving as many bytes as it can hold; try again later",
                          Duration::s(1)});
}

void Connection::take_events() {
  while (auto event = session_.next_event()) {
    take(*std::move(event));
    if (state_ != State::kServing) return;
  }
}

void Connection::take(Event event) {
  if (event.kind == Event::Kind::kCall) return open_call(std::move(event));
  if (event.kind == Event::Kind::kRefused) return count(owner_.server().bad_requests);
  const auto found = calls_.find(event.stream);
  if (found == calls_.end()) return;
  const std::shared_ptr<Call> call = found->second.call;
  switch (event.kind) {
    case Event::Kind::kMessage:
      // What came with the head of a call that was refused, or is not its first message.
      if (call->over() || call->has_request()) return;
      if (found->second.expanding) return hold(found->second, std::move(event));
      if (event.compressed) return take_compressed(found->second, std::move(event));
      return deliver(found->second, std::move(event.message));
    case Event::Kind::kHalfClose:
      if (call->over() || call->has_request()) return;
      if (found->second.expanding) return hold(found->second, std::move(event));
      if (found->second.method->streams) return call->half_closed();
      return call->refuse_counted({EndReason::kInvalid, "the call has no message", {}});
    case Event::Kind::kFault:
      if (call->over()) return;
      return call->refuse_counted(event.refusal);
    case Event::Kind::kSent:
      return call->sent();
    case Event::Kind::kClosed:
      calls_.erase(found);
      return call->closed();
    case Event::Kind::kCall:
    case Event::Kind::kRefused:
      break;
  }
}

void Connection::open_call(Event event) {
  const MethodTable& methods = owner_.server().methods;
  const auto call =
      std::make_shared<Call>(owner_.context(), *this, event.stream, std::move(event.head), peer_);
  const auto method = methods.offered.find(call->path());
  const bool offered = method != methods.offered.end();
  calls_.emplace(event.stream, Open{call, offered ? &method->second : nullptr, now_});
  watch_pace();
  if (!offered) {
    const auto known = methods.not_offered.find(call->path());
    return call->refuse_counted({EndReason::kUnsupported,
                                 known == methods.not_offered.end()
                                     ? "there is no such method"
                                     : known->second + " is not offered by this server",
                                 {}});
  }
  if (method->second.keyed) {
    // Before a byte of the message: without a key nothing is spent on it.
    const auto admitted = admit(call->metadata(), call->caller(), *call->worker().front);
    if (!admitted.has_value()) return call->refuse_counted(admitted.error());
  }
  const Encoding answers = call->answer_encoding();
  if (answers != Encoding::kIdentity) {
    session_.set_answer_encoding(event.stream, protocol::compression::encoding_name(answers));
  }
  if (method->second.streams) method->second.begin(call);
}

void Connection::deliver(const Open& open, std::string message) {
  const std::shared_ptr<Call> call = open.call;
  if (open.method->streams) return call->message(std::move(message));
  call->set_request(std::move(message));
  open.method->begin(call);
}

// ---- compressed messages

void Connection::hold(Open& open, Event event) {
  Storage counted = owner_.server().receiving->lend(event.message.size());
  if (counted == nullptr) {
    return open.call->refuse_counted(
        {EndReason::kOverloaded, "too many messages wait to be expanded", Duration::s(1)});
  }
  open.held.push_back({std::move(event), std::move(counted)});
}

void Connection::take_compressed(Open& open, Event event) {
  const uint64_t limit = message_limit(owner_.server(), open.call->path());
  const bool jobs = open.call->worker().readers != nullptr;
  if (jobs && event.message.size() > kMostPackedOnWorker) {
    return expand_by_job(open, std::move(event), limit);
  }
  const uint64_t most = jobs ? std::min(limit, kMostExpandedOnWorker) : limit;
  auto text = expand_message(message_encoding(open.call->metadata()), event.message, most);
  if (text.has_value()) return deliver(open, *std::move(text));
  if (text.error().reason == EndReason::kTooLarge && most < limit) {
    return expand_by_job(open, std::move(event), limit);
  }
  open.call->refuse_counted(text.error());
}

void Connection::expand_by_job(Open& open, Event event, uint64_t limit) {
  Storage counted = owner_.server().receiving->lend(event.message.size());
  if (counted == nullptr) {
    return open.call->refuse_counted(
        {EndReason::kOverloaded, "too many messages wait to be expanded", Duration::s(1)});
  }
  open.expanding = true;
  session_.pause(event.stream);
  open.call->worker().readers->run([self = weak_from_this(), &loop = owner_.loop(),
                                    encoding = message_encoding(open.call->metadata()),
                                    event = std::move(event), counted = std::move(counted),
                                    limit](ports::Cancellation&) mutable {
    auto text = expand_message(encoding, event.message, limit);
    loop.post([self = std::move(self), stream = event.stream, text = std::move(text),
               counted = std::move(counted)]() mutable {
      counted = nullptr;
      if (const auto connection = self.lock()) {
        connection->take_expanded(stream, std::move(text));
      }
    });
  });
}

void Connection::take_expanded(StreamId stream, Result<std::string, Refusal> text) {
  const auto found = calls_.find(stream);
  if (state_ != State::kServing || found == calls_.end()) return;
  Open& open = found->second;
  now_ = owner_.now();
  busy_ = true;
  open.expanding = false;
  if (!open.call->over()) {
    text.has_value() ? deliver(open, *std::move(text)) : open.call->refuse_counted(text.error());
  }
  while (!open.held.empty() && !open.expanding) {
    Event event = std::move(open.held.front().event);
    open.held.pop_front();
    take(std::move(event));
  }
  if (!open.expanding && !open.held_back) session_.resume(stream);
  busy_ = false;
  flush();
}

// ---- answering

void Connection::send(StreamId stream, std::vector<MessagePart> parts, bool compressed) {
  session_.send(stream, std::move(parts), compressed);
  flush_soon();
}

void Connection::finish(StreamId stream, const Status& status) {
  session_.finish(stream, status);
  flush_soon();
}

void Connection::pause(StreamId stream) {
  if (const auto found = calls_.find(stream); found != calls_.end()) found->second.held_back = true;
  session_.pause(stream);
}

void Connection::resume(StreamId stream) {
  if (const auto found = calls_.find(stream); found != calls_.end()) {
    found->second.held_back = false;
    if (found->second.expanding) return;
  }
  session_.resume(stream);
  flush_soon();  // which takes its events, and tells the client of its window
}

// At the end of the turn, so that what else ends in it leaves with one system call.
void Connection::flush_soon() {
  if (busy_ || flush_posted_ || state_ != State::kServing) return;
  flush_posted_ = true;
  owner_.loop().post([self = shared_from_this()] {
    self->flush_posted_ = false;
    self->now_ = self->owner_.now();
    if (self->state_ == State::kServing) self->flush();
  });
}

void Connection::flush() {
  busy_ = true;
  while (!write_armed_ && state_ == State::kServing) {
    session_.fill(out_, kMostFramed);
    take_events();
    if (state_ != State::kServing) break;
    if (out_.empty()) {
      if (session_.over()) linger();
      break;
    }
    if (!write_once()) break;
  }
  busy_ = false;
}

// False: nothing more can be written now.
bool Connection::write_once() {
  thread_local std::vector<std::span<const char>> pieces;
  std::array<iovec, kPiecesPerWrite> vectors{};
  out_.front(vectors.size(), pieces);
  for (size_t i = 0; i < pieces.size(); ++i) {
    vectors[i] = {const_cast<char*>(pieces[i].data()), pieces[i].size()};
  }
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = pieces.size();
  const ssize_t size = ::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (size < 0 && errno == EINTR) return true;
  if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    arm_write();
    return false;
  }
  if (size < 0) {
    close();
    return false;
  }
  out_.consume(static_cast<size_t>(size));
  written_ += static_cast<uint64_t>(size);
  return true;
}

void Connection::arm_write() {
  write_armed_ = true;
  if (window_from_.is_never()) {
    window_from_ = now_;
    window_written_ = written_;
  }
  watch_pace();
  socket_.async_wait(tcp::socket::wait_write,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       const Turn turn(self->owner_.loop());
                       self->write_armed_ = false;
                       if (error || self->state_ != State::kServing) return;
                       self->now_ = self->owner_.now();
                       self->flush();
                       if (!self->write_armed_) self->window_from_ = Instant::never();
                     });
}

// ---- ending

void Connection::drain() {
  if (state_ != State::kServing || draining_) return;
  draining_ = true;
  now_ = owner_.now();
  session_.announce_end();
  end_at_ = now_ + owner_.server().options.drain_grace;
  arm_timer(end_at_);
  flush();
}

// Writes what it can, sends the end of our side and drops what the client still sends: closing with
// unread bytes would reset the connection and take the last frames away from the client.
void Connection::linger() {
  if (state_ != State::kServing) return;
  session_.fill(out_, kMostFramed);
  while (!out_.empty() && !write_armed_ && write_once()) {
  }
  if (state_ == State::kClosed) return;
  boost::system::error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  state_ = State::kLingering;
  const GrpcServerOptions& options = owner_.server().options;
  end_at_ = now_ + (draining_ ? options.drain_grace : options.linger);
  arm_timer(end_at_);
  const auto calls = std::exchange(calls_, {});
  for (const auto& [stream, open] : calls) open.call->closed();
}

void Connection::drop_input() {
  for (int turn = 0; turn < kReadsPerTurn; ++turn) {
    const ssize_t size =
        ::recv(socket_.native_handle(), read_buffer.data(), read_buffer.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (size <= 0) return close();
  }
}

void Connection::close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  owner_.loop().cancel(std::exchange(timer_, 0));
  receiving_ = nullptr;
  boost::system::error_code ignored;
  socket_.close(ignored);
  const auto calls = std::exchange(calls_, {});
  for (const auto& [stream, open] : calls) open.call->closed();
  out_ = {};
  owner_.release(shared_from_this());
}

void Connection::cut_off() {
  close();
}

// ---- time

// Looks at the pace of calls four times in the shorter window.
void Connection::watch_pace() {
  const GrpcServerOptions& options = owner_.server().options;
  const Instant next = now_ + std::min(options.body_window, options.write_window) / 4;
  if (timer_ == 0 || next < timer_at_) arm_timer(next);
}

void Connection::arm_timer(Instant when) {
  owner_.loop().cancel(timer_);
  timer_at_ = when;
  timer_ = owner_.loop().arm(when, [self = weak_from_this()] {
    if (const auto connection = self.lock()) connection->on_timer();
  });
}

void Connection::on_timer() {
  timer_ = 0;
  now_ = owner_.now();
  if (now_ >= end_at_) {
    end_at_ = Instant::never();
    if (state_ == State::kLingering) return close();
    if (draining_) {
      session_.end();
      flush();
    } else if (!session_.established()) {
      count(owner_.server().timeouts);
      return close();
    }
  }
  if (state_ != State::kServing) return;
  check_pace();
  if (state_ != State::kServing || timer_ != 0) return;
  if (!end_at_.is_never()) arm_timer(end_at_);
  if (!calls_.empty() || write_armed_) watch_pace();
}

void Connection::bound_pace(const ServerSession::Progress& now) {
  const auto found = calls_.find(now.stream);
  if (found == calls_.end()) return;
  Open& open = found->second;
  const GrpcServerOptions& options = owner_.server().options;
  const bool received = now.received - open.received >= options.body_window_bytes;
  const bool sent = now.sent - open.sent >= options.write_window_bytes;
  if ((!now.receiving || received) && (!now.sending || sent)) {
    open.window_from = now_;
    open.received = now.received;
    open.sent = now.sent;
    return;
  }
  const bool stuck_sending = now.sending && !sent;
  const Duration window = stuck_sending ? options.write_window : options.body_window;
  // The window opened up to a quarter before the call came to wait.
  if (now_ - open.window_from < window + window / 4) return;
  count(owner_.server().timeouts);
  if (stuck_sending) {
    count(owner_.server().write_stalls);
    session_.reset(now.stream);
  } else {
    open.call->refuse_counted(
        {EndReason::kSlowClient, "the call's message arrives too slowly", {}});
  }
}

void Connection::check_pace() {
  const GrpcServerOptions& options = owner_.server().options;
  if (!window_from_.is_never() && now_ - window_from_ >= options.write_window) {
    if (written_ - window_written_ < options.write_window_bytes) {
      count(owner_.server().timeouts);
      count(owner_.server().write_stalls);
      return close();
    }
    window_from_ = now_;
    window_written_ = written_;
  }
  busy_ = true;
  session_.progress(paces_);
  for (const ServerSession::Progress& pace : paces_) bound_pace(pace);
  busy_ = false;
  flush();
}

}  // namespace baton::adapters::grpc_api
