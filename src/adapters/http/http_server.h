#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "adapters/transport/worker_loop.h"
#include "base/result.h"
#include "base/time.h"
#include "ports/clock.h"
#include "protocol/http1/exchange.h"
#include "protocol/http1/request_head.h"

namespace baton::adapters::http {

using transport::WorkerLoop;

struct HttpServerOptions {
  std::string address = "127.0.0.1";  // numeric, IPv4 or IPv6
  uint16_t port = 0;                  // 0: a free one
  int backlog = 1024;
  protocol::http1::RequestLimits limits;
  size_t connections_max = 4096;  // of all workers; above it a client gets 503 and is closed
  // Bytes of bodies that are not complete yet, of all connections; above it a body is refused: 503.
  // Complete requests are the handler's to bound.
  uint64_t receiving_bytes_max = 1ULL << 30;

  Duration idle_timeout = Duration::s(75);  // between requests
  Duration head_timeout = Duration::s(10);  // from the first byte of a head to its end
  // In each window of a body at least so many bytes must arrive, else 408.
  Duration body_window = Duration::s(10);
  uint64_t body_window_bytes = 5'000;
  // In each window of a response at least so many bytes must be taken by the client, else it is cut
  // off.
  Duration write_window = Duration::s(20);
  uint64_t write_window_bytes = 5'000;
  // How long bytes are dropped after a refusal so that the client can read it, instead of a reset.
  Duration linger = Duration::s(2);
  // While draining, how long an idle connection may still send a request, which is answered with
  // Connection: close.
  Duration drain_idle_grace = Duration::ms(500);
  // A client that shuts its sending side down after a request: answered, or treated as gone (the
  // default: it cannot be told from one that closed).
  bool answer_half_closed = false;
};

// One worker: its loop and what handles its requests. Both outlive the server.
struct HttpWorker {
  WorkerLoop* loop = nullptr;
  protocol::http1::HttpHandler* handler = nullptr;
};

struct HttpServerCounters {
  uint64_t open = 0;          // connections now
  uint64_t accepted = 0;      // since the start
  uint64_t refused = 0;       // over connections_max
  uint64_t receiving = 0;     // bytes of bodies that are not complete
  uint64_t timeouts = 0;      // requests that came, or answers that were taken, too slowly
  uint64_t bad_requests = 0;  // refused by the codec for what they are
  uint64_t write_stalls = 0;  // of the timeouts, answers that were not taken
};

// Serves HTTP/1.1 on one address. One listener hands each connection to the worker with the fewest:
// clients of inference keep few connections for long, which the hash of SO_REUSEPORT spreads badly,
// and a worker could not take them back when it ends. Constructed before the loops run or beside
// them; destroyed when they have stopped.
class HttpServer {
 public:
  HttpServer(HttpServerOptions options, const std::vector<HttpWorker>& workers,
             const ports::Clock& clock);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Binds and accepts on the first worker's loop. The port, or why not. Once.
  [[nodiscard]] Result<uint16_t, std::string> listen();
  // Takes what is in the backlog, then closes the listener. Any thread; again: no effect.
  void stop_accepting();
  // Stops accepting, lets every exchange end with Connection: close and closes idle connections; at
  // `deadline` the rest is cut off. `done` is called once, on the first worker's loop, when no
  // connection is left. Any thread; once.
  void drain(Instant deadline, std::move_only_function<void()> done);

  [[nodiscard]] HttpServerCounters counters() const;  // any thread

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::adapters::http
