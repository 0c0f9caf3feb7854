#pragma once
// Internal to this room: one client's connection.

#include <boost/asio/ip/tcp.hpp>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "adapters/grpc/call.h"
#include "adapters/grpc/connection_set.h"

namespace baton::adapters::grpc_api {

// Serving -> lingering -> closed. On its worker's loop only. Bounded: the session's calls, their
// messages, 256 KiB of framed output; answers that wait are counted by who made them.
class Connection final : public CallSink, public std::enable_shared_from_this<Connection> {
 public:
  Connection(ConnectionSet& owner, boost::asio::ip::tcp::socket socket, std::string peer);
  ~Connection();

  void start();
  void drain();
  void cut_off();

  void send(StreamId stream, std::vector<MessagePart> parts, bool compressed) override;
  void finish(StreamId stream, const Status& status) override;
  void pause(StreamId stream) override;
  void resume(StreamId stream) override;

 private:
  enum class State : uint8_t { kServing, kLingering, kClosed };
  using Event = protocol::grpc_wire::SessionEvent;
  // What came behind a message that a job expands, and its share of what is being received.
  struct Held {
    Event event;
    Storage counted;
  };
  struct Open {
    std::shared_ptr<Call> call;
    const Method* method = nullptr;
    // The pace of its message and of its answer: when the window opened, and what was done then.
    Instant window_from;
    uint64_t received = 0;
    uint64_t sent = 0;
    bool held_back = false;   // by its method
    bool expanding = false;   // a message of it, by a job; the session is paused meanwhile
    std::deque<Held> held{};  // at most the stream's window and one read
  };

  void arm_read();
  void arm_write();
  void on_readable();
  void receive();
  void drop_input();
  void take_events();
  void take(Event event);
  void open_call(Event event);
  void hold(Open& open, Event event);
  void take_compressed(Open& open, Event event);
  void expand_by_job(Open& open, Event event, uint64_t limit);
  void take_expanded(StreamId stream, Result<std::string, Refusal> text);
  static void deliver(const Open& open, std::string message);
  void count_receiving();

  void flush_soon();
  void flush();
  bool write_once();
  void linger();
  void close();

  void watch_pace();
  void arm_timer(Instant when);
  void on_timer();
  void bound_pace(const protocol::grpc_wire::ServerSession::Progress& now);
  void check_pace();

  ConnectionSet& owner_;
  boost::asio::ip::tcp::socket socket_;
  const std::string peer_;
  protocol::grpc_wire::ServerSession session_;
  protocol::grpc_wire::OutputQueue out_;
  std::unordered_map<StreamId, Open> calls_;
  State state_ = State::kServing;
  bool busy_ = false;  // within an event: output is flushed at its end
  bool flush_posted_ = false;
  bool write_armed_ = false;
  bool draining_ = false;
  Storage receiving_;  // counts `receiving_bytes_`
  size_t receiving_bytes_ = 0;

  Instant now_;  // when the current event began
  ports::TimerId timer_ = 0;
  Instant timer_at_;
  Instant end_at_ = Instant::never();  // of the start, the grace of draining, or lingering
  uint64_t written_ = 0;
  uint64_t window_written_ = 0;
  Instant window_from_ = Instant::never();  // since when the socket takes nothing more
  std::vector<protocol::grpc_wire::ServerSession::Progress> paces_;
};

}  // namespace baton::adapters::grpc_api
