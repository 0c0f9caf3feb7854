#include "adapters/grpc/connection_set.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>
#include <vector>

#include "adapters/grpc/connection.h"
#include "adapters/transport/loop_impl.h"

namespace baton::adapters::grpc_api {

using boost::asio::ip::tcp;

namespace {

void set(int socket, int level, int option, int value) {
  static_cast<void>(::setsockopt(socket, level, option, &value, sizeof value));
}

// Clients keep idle connections for hours; those whose machine is gone are noticed in 90 s.
void keep_alive(int socket) {
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace

ConnectionSet::ConnectionSet(const GrpcWorker& worker, ServerState& server,
                             const ports::Clock& clock)
    : server_(server),
      context_{worker, clock, server.options.message_bytes_max, server.options.forward_headers,
               server.receiving} {}

ConnectionSet::~ConnectionSet() {
  cut_off();
}

void ConnectionSet::adopt(int socket, std::string peer) {
  load_.fetch_add(1, std::memory_order_relaxed);
  loop().post([this, socket, peer = std::move(peer)]() mutable { open(socket, std::move(peer)); });
}

void ConnectionSet::open(int socket, std::string peer) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  keep_alive(socket);
  tcp::socket stream(loop().impl().io);
  stream.assign(tcp::v4(),
                socket);  // the family matters only for addresses, which are not asked for
  auto connection = std::make_shared<Connection>(*this, std::move(stream), std::move(peer));
  connections_.insert(connection);
  connection->start();
  if (draining_) connection->drain();
}

void ConnectionSet::release(const std::shared_ptr<Connection>& connection) {
  if (connections_.erase(connection) == 0) return;
  load_.fetch_sub(1, std::memory_order_relaxed);
  server_.open.fetch_sub(1, std::memory_order_release);
}

void ConnectionSet::begin_drain(Instant deadline) {
  if (draining_) return;
  draining_ = true;
  const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
  for (const auto& connection : all) connection->drain();
  loop().arm(deadline, [this] { cut_off(); });
}

void ConnectionSet::cut_off() {
  const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
  for (const auto& connection : all) connection->cut_off();
}

}  // namespace baton::adapters::grpc_api
