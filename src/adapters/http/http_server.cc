#include "adapters/http/http_server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "adapters/http/connection_set.h"
#include "adapters/transport/acceptor.h"

namespace baton::adapters::http {

namespace {

constexpr Duration kDrainCheck = Duration::ms(5);

std::atomic<uint64_t> next_worker_number{1};

}  // namespace

struct HttpServer::Impl {
  Impl(HttpServerOptions options, const std::vector<HttpWorker>& workers,
       const ports::Clock& clock);

  void place(int socket, std::string peer);
  void check_drained();

  ServerState state;
  WorkerLoop& first;
  transport::Acceptor acceptor;
  std::vector<std::unique_ptr<ConnectionSet>> sets;
  std::move_only_function<void()> drained;
};

HttpServer::Impl::Impl(HttpServerOptions options, const std::vector<HttpWorker>& workers,
                       const ports::Clock& clock)
    : first(*workers.front().loop), acceptor(first, clock, [this](int socket, std::string peer) {
        place(socket, std::move(peer));
      }) {
  state.options = std::move(options);
  state.clock = &clock;
  for (const HttpWorker& worker : workers) {
    const uint64_t number = next_worker_number.fetch_add(1, std::memory_order_relaxed);
    sets.push_back(std::make_unique<ConnectionSet>(worker, number, state));
  }
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
  const HttpServerOptions& options = impl_->state.options;
  return impl_->acceptor.listen(options.address, options.port, options.backlog);
}

void HttpServer::stop_accepting() {
  impl_->first.post([impl = impl_.get()] { impl->acceptor.stop(); });
}

void HttpServer::drain(Instant deadline, std::move_only_function<void()> done) {
  impl_->first.post([impl = impl_.get(), deadline, done = std::move(done)]() mutable {
    impl->acceptor.stop();
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
