#pragma once
// Internal to this room: the listening socket.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "base/result.h"

namespace baton::adapters::grpc_api {

// Accepts connections on a thread of its own and hands them on. The library's own listener does not
// come back once the process has run out of descriptors; this one waits until there are some again.
class Listener {
 public:
  // `take` gets each connected socket and owns it; on the listener's thread.
  // `refused`, unless null, counts those that are closed at once, because connections of this port
  // may use three quarters of the process's descriptors at most: the rest is for others.
  explicit Listener(std::function<void(int socket)> take, std::atomic<uint64_t>* refused = nullptr)
      : take_(std::move(take)), refused_(refused) {}
  ~Listener() { stop(); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // `address` is numeric, IPv4 or IPv6; port 0 is a free one. The port, or why not. Once.
  [[nodiscard]] Result<uint16_t, std::string> listen(const std::string& address, uint16_t port);
  // stop() without waiting for its end. Any thread.
  void ask_to_stop() const;
  // Hands on whoever has connected by now and closes the listening socket: no connection is handed
  // on afterwards. Again: no effect.
  void stop();

 private:
  void run();
  bool accept_some(int most);

  const std::function<void(int socket)> take_;
  std::atomic<uint64_t>* const refused_;
  int socket_ = -1;
  int stop_event_ = -1;
  std::thread thread_;
};

}  // namespace baton::adapters::grpc_api
