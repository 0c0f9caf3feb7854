#pragma once
// Internal to this room: one client's connection.

#include <sys/uio.h>

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>
#include <vector>

#include "adapters/http/connection_set.h"
#include "protocol/http1/request_parser.h"
#include "protocol/http1/response_writer.h"

namespace baton::adapters::http {

// One exchange after the other: reading -> working -> writing -> reading, or lingering -> closed.
// The socket is waited for and then read and written directly, so that an idle connection holds no
// buffer that an operation points into. Bounded: one head's worth of pipelined bytes, one body, one
// response. On its worker's loop only.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(ConnectionSet& owner, uint32_t slot, boost::asio::ip::tcp::socket socket,
             std::string peer);

  void start();
  void start_refused();  // says 503, reads nothing
  void respond(protocol::http1::ExchangeId id, protocol::http1::HttpResponse response);
  void on_drain();
  void cut_off();
  void on_hang_up();  // told by the worker's HangUpWatch

 private:
  enum class State { kReading, kWorking, kWriting, kLingering, kClosed };
  enum class After { kNextRequest, kClose, kLinger };
  struct Outgoing {
    std::string head;
    protocol::http1::HttpResponse response;
    std::vector<iovec> pieces;
    size_t next = 0;  // piece
    After after = After::kNextRequest;
  };

  void arm_read();
  void arm_write();
  void watch();
  void unwatch();
  void on_readable();
  void receive();
  void on_end_of_input();
  void on_broken();

  void advance();
  void wait_for_more();
  void handle_head();
  void dispatch();
  void refuse(int status, std::string_view message);
  void count_body(uint64_t bytes);
  bool send_continue();

  void send(protocol::http1::HttpResponse response, After after);
  void gather_pieces();
  void write();
  bool write_once();
  void on_written();
  void linger();
  void drop_input();
  void close();

  void set_deadline(Instant when);
  void on_timer();
  void on_deadline();
  void open_window(uint64_t done, Duration length);

  ConnectionSet& owner_;
  const uint32_t slot_;
  boost::asio::ip::tcp::socket socket_;
  const std::string peer_;
  State state_ = State::kReading;
  protocol::http1::RequestParser parser_;
  bool read_armed_ = false;
  bool watched_ = false;  // for the client's end, while nothing is read
  bool advancing_ = false;
  bool end_of_input_ = false;  // the client has shut its sending side down
  bool continue_sent_ = false;
  Instant now_;            // when the current event began
  Instant first_byte_at_;  // of the request being read
  protocol::http1::ExchangeId exchange_;
  protocol::http1::ResponseFraming framing_;
  Outgoing out_;
  uint64_t written_ = 0;  // bytes of the current response
  uint64_t dropped_ = 0;  // bytes while lingering
  uint64_t counted_ = 0;  // of the body, in the server's count of bytes being received

  Instant deadline_ = Instant::never();
  ports::TimerId timer_ = 0;
  Instant timer_at_ = Instant::never();
  uint64_t window_start_ = 0;  // bytes done when the window opened
};

}  // namespace baton::adapters::http
