#pragma once
// Internal to this room: which clients have gone while nothing is read from them.

#include <cstdint>
#include <functional>
#include <memory>

#include "adapters/transport/worker_loop.h"

namespace baton::adapters::transport {

// Watches sockets for the end of their clients alone. Waiting for readability would say at once,
// and again, that there are bytes: those that are left in the socket until there is room for them.
// Holds one descriptor. Constructed anywhere, used on its loop, destroyed when that has stopped.
class HangUpWatch {
 public:
  // `gone` gets the key of a socket whose client has reset or closed the connection, or, when
  // `half_closed_is_gone`, has shut its sending side down. The socket is not watched any more then.
  HangUpWatch(WorkerLoop& loop, bool half_closed_is_gone,
              std::move_only_function<void(uint32_t key)> gone);
  ~HangUpWatch();
  HangUpWatch(const HangUpWatch&) = delete;
  HangUpWatch& operator=(const HangUpWatch&) = delete;

  void add(int socket, uint32_t key);
  void remove(int socket);  // before the socket is closed

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::adapters::transport
