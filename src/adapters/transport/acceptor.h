#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "adapters/transport/worker_loop.h"
#include "base/result.h"
#include "ports/clock.h"

namespace baton::adapters::transport {

// Listens on one address and hands each connection on. While the process has no descriptors or no
// memory left the clients wait in the backlog, and it looks again every 50 ms.
class Acceptor {
 public:
  // A connected socket, non-blocking, which the callee owns, and the client's address without the
  // port. On the loop.
  using Place = std::move_only_function<void(int socket, std::string peer)>;

  // `loop` and `clock` outlive it. Destroyed when the loop has stopped, or after stop().
  Acceptor(WorkerLoop& loop, const ports::Clock& clock, Place place);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // `address` is numeric, IPv4 or IPv6; port 0 is a free one. The port, or why not. Once; any
  // thread.
  [[nodiscard]] Result<uint16_t, std::string> listen(const std::string& address, uint16_t port,
                                                     int backlog);
  // Hands on whoever waits in the backlog, then closes the listening socket. On the loop; again: no
  // effect.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::adapters::transport
