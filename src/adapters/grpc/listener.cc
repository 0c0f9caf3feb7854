#include "adapters/grpc/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/check.h"

namespace baton::adapters::grpc_api {
namespace {

constexpr int kBacklog = 1024;
constexpr int kMostATurn = 64;  // then it looks whether to stop
constexpr int kPauseMs = 50;    // after running out of descriptors or memory

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

void turn_on(int socket, int level, int option) {
  const int on = 1;
  static_cast<void>(::setsockopt(socket, level, option, &on, sizeof on));
}

// False with errno.
bool bind_and_listen(int socket, const addrinfo& address) {
  turn_on(socket, SOL_SOCKET, SO_REUSEADDR);
  turn_on(socket, IPPROTO_TCP, TCP_NODELAY);  // what it accepts inherits it
  return ::bind(socket, address.ai_addr, address.ai_addrlen) == 0 &&
         ::listen(socket, kBacklog) == 0;
}

uint16_t port_of(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  std::array<char, NI_MAXSERV> port{};
  auto* address = std::bit_cast<sockaddr*>(&bound);
  BATON_CHECK(::getsockname(socket, address, &size) == 0);
  BATON_CHECK(::getnameinfo(address, size, nullptr, 0, port.data(), port.size(), NI_NUMERICSERV) ==
              0);
  return static_cast<uint16_t>(std::stoi(port.data()));
}

// Descriptors are given out from the lowest: those below this one are in use.
bool leaves_room(int descriptor) {
  rlimit limit{};
  BATON_CHECK(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  return static_cast<rlim_t>(descriptor) < limit.rlim_cur - limit.rlim_cur / 4;
}

}  // namespace

Result<uint16_t, std::string> Listener::listen(const std::string& address, uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return fail("'" + address + "' is not a numeric IP address");
  }
  const Addresses addresses(found);
  socket_ = ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket_ < 0 || !bind_and_listen(socket_, *found)) {
    const std::string cause = std::strerror(errno);
    stop();
    return fail("cannot listen on " + address + " port " + std::to_string(port) + ": " + cause);
  }
  stop_event_ = ::eventfd(0, EFD_CLOEXEC);
  BATON_CHECK(stop_event_ >= 0);
  thread_ = std::thread([this] { run(); });
  return port_of(socket_);
}

void Listener::ask_to_stop() const {
  const uint64_t one = 1;
  BATON_CHECK(::write(stop_event_, &one, sizeof one) == static_cast<ssize_t>(sizeof one));
}

void Listener::stop() {
  if (thread_.joinable()) {
    ask_to_stop();
    thread_.join();
    ::close(stop_event_);
  }
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

void Listener::run() {
  pthread_setname_np(pthread_self(), "baton-grpc-in");
  std::array<pollfd, 2> watched = {{{stop_event_, POLLIN, 0}, {socket_, POLLIN, 0}}};
  for (bool pause = false;;) {
    // During a pause the clients wait in the backlog.
    ::poll(watched.data(), pause ? 1 : 2, pause ? kPauseMs : -1);
    if (watched[0].revents != 0) break;
    pause = !accept_some(kMostATurn);
  }
  // They have connected: they are to be told that the server goes, not reset.
  static_cast<void>(accept_some(kBacklog));
}

// False when there are no descriptors or no memory for the next one.
bool Listener::accept_some(int most) {
  for (int i = 0; i < most; ++i) {
    const int socket = ::accept4(socket_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0 && leaves_room(socket)) {
      take_(socket);
    } else if (socket >= 0) {
      ::close(socket);
      if (refused_ != nullptr) refused_->fetch_add(1, std::memory_order_relaxed);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return false;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINVAL || errno == EBADF) {
      return true;
    }
    // Else a client that has gone from the backlog already, or a signal.
  }
  return true;
}

}  // namespace baton::adapters::grpc_api
