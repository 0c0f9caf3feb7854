#include "adapters/transport/acceptor.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <utility>

#include "adapters/transport/loop_impl.h"

namespace baton::adapters::transport {

using boost::asio::ip::tcp;

namespace {

constexpr int kAcceptsPerTurn = 64;
constexpr Duration kPause = Duration::ms(50);  // after running out of descriptors or memory

std::string peer_text(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes =
      address.ss_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr)
          : &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  const char* result = ::inet_ntop(address.ss_family, bytes, text.data(), text.size());
  return result == nullptr ? std::string() : std::string(result);
}

}  // namespace

struct Acceptor::Impl {
  Impl(WorkerLoop& on, const ports::Clock& time, Place to)
      : loop(on), clock(time), place(std::move(to)), socket(loop.impl().io) {}

  void arm();
  void accept_some();
  // False when there is nothing to accept for now.
  bool accept_one();

  WorkerLoop& loop;
  const ports::Clock& clock;
  Place place;
  tcp::acceptor socket;
};

Acceptor::Acceptor(WorkerLoop& loop, const ports::Clock& clock, Place place)
    : impl_(std::make_unique<Impl>(loop, clock, std::move(place))) {}

Acceptor::~Acceptor() = default;

Result<uint16_t, std::string> Acceptor::listen(const std::string& address, uint16_t port,
                                               int backlog) {
  boost::system::error_code error;
  const auto numeric = boost::asio::ip::make_address(address, error);
  if (error) return fail("'" + address + "' is not a numeric IP address");
  const tcp::endpoint endpoint(numeric, port);
  tcp::acceptor& socket = impl_->socket;
  socket.open(endpoint.protocol(), error);
  if (!error) socket.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) socket.bind(endpoint, error);
  if (!error) socket.listen(backlog, error);
  if (!error) socket.native_non_blocking(true, error);
  if (error) {
    boost::system::error_code ignored;
    socket.close(ignored);
    return fail("cannot listen on " + address + " port " + std::to_string(port) + ": " +
                error.message());
  }
  const uint16_t bound = socket.local_endpoint(error).port();
  impl_->loop.post([impl = impl_.get()] { impl->arm(); });
  return bound;
}

void Acceptor::Impl::arm() {
  if (!socket.is_open()) return;
  socket.async_wait(tcp::acceptor::wait_read, [this](const boost::system::error_code& error) {
    const Turn turn(loop);
    if (!error) accept_some();
  });
}

void Acceptor::Impl::accept_some() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (accept_one()) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      loop.arm(clock.now() + kPause, [this] { arm(); });
      return;
    }
    break;
  }
  arm();
}

bool Acceptor::Impl::accept_one() {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  const int client = ::accept4(socket.native_handle(), reinterpret_cast<sockaddr*>(&address), &size,
                               SOCK_NONBLOCK | SOCK_CLOEXEC);
  // A client that has gone from the backlog already is no reason to stop.
  if (client < 0) return errno == ECONNABORTED || errno == EINTR;
  place(client, peer_text(address));
  return true;
}

void Acceptor::stop() {
  if (!impl_->socket.is_open()) return;
  while (impl_->accept_one()) {
  }
  boost::system::error_code ignored;
  impl_->socket.close(ignored);
}

}  // namespace baton::adapters::transport
