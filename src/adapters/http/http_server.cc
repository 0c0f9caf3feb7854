#include "adapters/http/http_server.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>

#include "adapters/http/connection_set.h"
#include "adapters/http/loop_impl.h"

namespace baton::adapters::http {

using boost::asio::ip::tcp;

namespace {

constexpr int kAcceptsPerTurn = 64;
constexpr Duration kAcceptPause =
    Duration::ms(50);  // after running out of file descriptors or memory
constexpr Duration kDrainCheck = Duration::ms(5);

std::atomic<uint64_t> next_worker_number{1};

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

struct HttpServer::Impl {
  Impl(HttpServerOptions options, const std::vector<HttpWorker>& workers,
       const ports::Clock& clock);

  Result<uint16_t, std::string> listen();
  void arm_accept();
  void accept_some();
  // False when there is nothing to accept for now.
  bool accept_one();
  void place(int socket, std::string peer);
  void stop_accepting();
  void check_drained();

  ServerState state;
  WorkerLoop& first;
  tcp::acceptor acceptor;
  std::vector<std::unique_ptr<ConnectionSet>> sets;
  std::move_only_function<void()> drained;
};

HttpServer::Impl::Impl(HttpServerOptions options, const std::vector<HttpWorker>& workers,
                       const ports::Clock& clock)
    : first(*workers.front().loop), acceptor(first.impl().io) {
  state.options = std::move(options);
  state.clock = &clock;
  for (const HttpWorker& worker : workers) {
    const uint64_t number = next_worker_number.fetch_add(1, std::memory_order_relaxed);
    sets.push_back(std::make_unique<ConnectionSet>(worker, number, state));
  }
}

Result<uint16_t, std::string> HttpServer::Impl::listen() {
  const HttpServerOptions& options = state.options;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(options.address, error);
  if (error) return fail("'" + options.address + "' is not a numeric IP address");
  const tcp::endpoint endpoint(address, options.port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(options.backlog, error);
  if (!error) acceptor.native_non_blocking(true, error);
  if (error) {
    boost::system::error_code ignored;
    acceptor.close(ignored);
    return fail("cannot listen on " + options.address + " port " + std::to_string(options.port) +
                ": " + error.message());
  }
  const uint16_t port = acceptor.local_endpoint(error).port();
  first.post([this] { arm_accept(); });
  return port;
}

void HttpServer::Impl::arm_accept() {
  if (!acceptor.is_open()) return;
  acceptor.async_wait(tcp::acceptor::wait_read, [this](const boost::system::error_code& error) {
    const Turn turn(first);
    if (!error) accept_some();
  });
}

void HttpServer::Impl::accept_some() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (accept_one()) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      // Out of descriptors or memory: the clients wait in the backlog meanwhile.
      first.arm(state.clock->now() + kAcceptPause, [this] { arm_accept(); });
      return;
    }
    break;
  }
  arm_accept();
}

bool HttpServer::Impl::accept_one() {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  const int socket = ::accept4(acceptor.native_handle(), reinterpret_cast<sockaddr*>(&address),
                               &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  // A client that has gone from the backlog already is no reason to stop.
  if (socket < 0) return errno == ECONNABORTED || errno == EINTR;
  place(socket, peer_text(address));
  return true;
}

void HttpServer::Impl::place(int socket, std::string peer) {
  const uint64_t open = state.open.fetch_add(1, std::memory_order_relaxed);
  state.accepted.fetch_add(1, std::memory_order_relaxed);
  const size_t limit = state.options.connections_max;
  const bool refuse = open >= limit;
  if (refuse) state.refused.fetch_add(1, std::memory_order_relaxed);
  if (open >= limit + limit / 8 + 16) {  // those being refused are bounded as well
    ::close(socket);
    state.open.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  const auto least = std::min_element(
      sets.begin(), sets.end(), [](const auto& a, const auto& b) { return a->load() < b->load(); });
  (*least)->adopt(socket, std::move(peer), refuse);
}

void HttpServer::Impl::stop_accepting() {
  if (!acceptor.is_open()) return;
  while (accept_one()) {
  }
  boost::system::error_code ignored;
  acceptor.close(ignored);
}

void HttpServer::Impl::check_drained() {
  if (state.open.load(std::memory_order_acquire) == 0) {
    if (drained) std::exchange(drained, nullptr)();
    return;
  }
  first.arm(state.clock->now() + kDrainCheck, [this] { check_drained(); });
}

HttpServer::HttpServer(HttpServerOptions options, const std::vector<HttpWorker>& workers,
                       const ports::Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(options), workers, clock)) {}

HttpServer::~HttpServer() = default;

Result<uint16_t, std::string> HttpServer::listen() {
  return impl_->listen();
}

void HttpServer::stop_accepting() {
  impl_->first.post([impl = impl_.get()] { impl->stop_accepting(); });
}

void HttpServer::drain(Instant deadline, std::move_only_function<void()> done) {
  impl_->first.post([impl = impl_.get(), deadline, done = std::move(done)]() mutable {
    impl->stop_accepting();
    impl->drained = std::move(done);
    for (const auto& set : impl->sets) {
      set->loop().post([target = set.get(), deadline] { target->begin_drain(deadline); });
    }
    impl->check_drained();
  });
}

HttpServerCounters HttpServer::counters() const {
  return {.open = impl_->state.open.load(std::memory_order_relaxed),
          .accepted = impl_->state.accepted.load(std::memory_order_relaxed),
          .refused = impl_->state.refused.load(std::memory_order_relaxed),
          .receiving = impl_->state.receiving.load(std::memory_order_relaxed),
          .timeouts = impl_->state.timeouts.load(std::memory_order_relaxed),
          .bad_requests = impl_->state.bad_requests.load(std::memory_order_relaxed),
          .write_stalls = impl_->state.write_stalls.load(std::memory_order_relaxed)};
}

}  // namespace baton::adapters::http
