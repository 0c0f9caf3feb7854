#include "adapters/http/connection_set.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "adapters/http/connection.h"
#include "adapters/transport/loop_impl.h"
#include "domain/server_config.h"

namespace baton::adapters::http {

using boost::asio::ip::tcp;
using protocol::http1::ExchangeId;

namespace {

// An exchange id is [worker 12 bits][slot 20 bits][exchange on that slot 32 bits].
constexpr int kSlotShift = 32;
constexpr int kWorkerShift = 52;
constexpr uint64_t kSlotMask = (1ULL << 20) - 1;
// All connections may be on one worker; an eighth more and a few are open while they are refused.
static_assert(kMostConnections + kMostConnections / 8 + 16 <= kSlotMask + 1);

}  // namespace

ConnectionSet::ConnectionSet(HttpWorker worker, uint64_t number, ServerState& server)
    : worker_(worker),
      number_(number),
      server_(server),
      hang_ups_(*worker.loop, !server.options.answer_half_closed,
                [this](uint32_t slot) { on_hang_up(slot); }) {}

ConnectionSet::~ConnectionSet() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (const auto connection = slots_[i].connection) connection->cut_off();
  }
}

void ConnectionSet::adopt(int socket, std::string peer, bool refuse) {
  load_.fetch_add(1, std::memory_order_relaxed);
  worker_.loop->post([this, socket, peer = std::move(peer), refuse]() mutable {
    open(socket, std::move(peer), refuse);
  });
}

void ConnectionSet::open(int socket, std::string peer, bool refuse) {
  // Answers are small and written whole: waiting for more would only add Nagle's 40 ms.
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const uint32_t slot = free_.back();
  free_.pop_back();
  tcp::socket stream(worker_.loop->impl().io);
  stream.assign(tcp::v4(),
                socket);  // the family matters only for addresses, which are not asked for
  auto connection = std::make_shared<Connection>(*this, slot, std::move(stream), std::move(peer));
  slots_[slot].connection = connection;
  if (refuse) {
    connection->start_refused();
  } else {
    connection->start();
  }
}

ExchangeId ConnectionSet::next_exchange(uint32_t slot) {
  const uint64_t count = ++slots_[slot].exchanges & 0xffffffff;
  return ExchangeId((number_ << kWorkerShift) | (uint64_t{slot} << kSlotShift) | count);
}

void ConnectionSet::respond(ExchangeId id, protocol::http1::HttpResponse response) {
  const uint64_t slot = (id.value() >> kSlotShift) & kSlotMask;
  if (slot >= slots_.size()) return;
  if (const auto connection = slots_[slot].connection) {
    connection->respond(id, std::move(response));
  }
}

void ConnectionSet::release(uint32_t slot) {
  // Not destroyed here: the connection is in the middle of its last call.
  worker_.loop->post([last = std::move(slots_[slot].connection)] {});
  slots_[slot].connection = nullptr;
  free_.push_back(slot);
  load_.fetch_sub(1, std::memory_order_relaxed);
  server_.open.fetch_sub(1, std::memory_order_relaxed);
}

void ConnectionSet::on_hang_up(uint32_t slot) {
  if (const auto connection = slots_[slot].connection) connection->on_hang_up();
}

bool ConnectionSet::count_receiving(int64_t change) {
  const auto bytes = static_cast<uint64_t>(change);  // wraps around for a decrease, as the sum does
  const uint64_t before = server_.receiving.fetch_add(bytes, std::memory_order_relaxed);
  return before + bytes <= server_.options.receiving_bytes_max;
}

void ConnectionSet::begin_drain(Instant deadline) {
  if (draining_) return;
  draining_ = true;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (const auto connection = slots_[i].connection) connection->on_drain();
  }
  worker_.loop->arm(deadline, [this] { cut_off(); });
}

void ConnectionSet::cut_off() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (const auto connection = slots_[i].connection) connection->cut_off();
  }
}

}  // namespace baton::adapters::http
