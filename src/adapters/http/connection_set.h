#pragma once
// Internal to this room: the connections of one worker.

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>
#include <vector>

#include "adapters/http/http_server.h"
#include "adapters/transport/hang_up_watch.h"

namespace baton::adapters::http {

class Connection;
using transport::HangUpWatch;

// What all workers of a server share. Counters only; relaxed.
struct ServerState {
  HttpServerOptions options;
  const ports::Clock* clock = nullptr;
  std::atomic<uint64_t> open{0};
  std::atomic<uint64_t> accepted{0};
  std::atomic<uint64_t> refused{0};
  std::atomic<uint64_t> receiving{0};  // bytes of incomplete bodies
  std::atomic<uint64_t> timeouts{0};
  std::atomic<uint64_t> bad_requests{0};
  std::atomic<uint64_t> write_stalls{0};
};

// All calls on the worker's loop, but those marked.
class ConnectionSet final : public protocol::http1::HttpResponder {
 public:
  ConnectionSet(HttpWorker worker, uint64_t number, ServerState& server);
  ~ConnectionSet() override;
  ConnectionSet(const ConnectionSet&) = delete;
  ConnectionSet& operator=(const ConnectionSet&) = delete;

  // Takes a connected socket over; from any thread, since the listener is on the first worker.
  // `refuse`: only to be told 503.
  void adopt(int socket, std::string peer, bool refuse);
  [[nodiscard]] uint64_t load() const {
    return load_.load(std::memory_order_relaxed);
  }  // any thread

  void respond(protocol::http1::ExchangeId id, protocol::http1::HttpResponse response) override;

  void begin_drain(Instant deadline);
  void cut_off();
  [[nodiscard]] bool draining() const { return draining_; }

  // For connections.
  [[nodiscard]] protocol::http1::ExchangeId next_exchange(uint32_t slot);
  void release(uint32_t slot);
  void count_timeout() { server_.timeouts.fetch_add(1, std::memory_order_relaxed); }
  void count_bad_request() { server_.bad_requests.fetch_add(1, std::memory_order_relaxed); }
  // Changes the count of bytes being received; false when it is over the limit then.
  bool count_receiving(int64_t change);
  void count_write_stall() { server_.write_stalls.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] const HttpServerOptions& options() const { return server_.options; }
  [[nodiscard]] Instant now() const { return server_.clock->now(); }
  [[nodiscard]] WorkerLoop& loop() { return *worker_.loop; }
  [[nodiscard]] HangUpWatch& hang_ups() { return hang_ups_; }
  [[nodiscard]] protocol::http1::HttpHandler& handler() { return *worker_.handler; }

 private:
  void open(int socket, std::string peer, bool refuse);
  void on_hang_up(uint32_t slot);

  struct Slot {
    std::shared_ptr<Connection> connection;
    uint64_t exchanges = 0;  // started on this slot, so that an id never names a later exchange
  };

  HttpWorker worker_;
  uint64_t number_;  // of the worker, unique within the process
  ServerState& server_;
  HangUpWatch hang_ups_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  bool draining_ = false;
  std::atomic<uint64_t> load_{0};
};

}  // namespace baton::adapters::http
