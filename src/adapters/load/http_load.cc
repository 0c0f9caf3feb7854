#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>

#include "adapters/load/load.h"
#include "base/check.h"
#include "protocol/http1/client.h"
#include "protocol/oip/client.h"

namespace baton::adapters::load {
namespace {

namespace http1 = protocol::http1;
using Event = http1::ResponseParser::Event;

constexpr int kEvents = 256;

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses, std::string> resolve(const LoadTarget& target) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(target.host.c_str(), std::to_string(target.port).c_str(), &hints, &found) != 0) {
    return fail("\"" + target.host + "\" is not a numeric address");
  }
  return Addresses(found);
}

// Head and body of one request, ready to be sent.
std::string render(const LoadTarget& target, const InferRequest& request) {
  const auto encoded = protocol::oip::encode_infer_request(request.inputs);
  const std::string path = protocol::oip::model_target(target.model) + "/infer";
  const std::string host = target.host + ":" + std::to_string(target.port);
  const std::array<http1::Header, 2> headers = {
      http1::Header{"Inference-Header-Content-Length", std::to_string(encoded.header_length)},
      http1::Header{"Content-Type", "application/octet-stream"}};
  http1::ClientRequestHead head;
  head.method = "POST";
  head.target = path;
  head.host = host;
  head.headers = headers;
  head.content_length = encoded.body.size();
  std::string out;
  http1::append_request_head(out, head);
  return out + encoded.body;
}

// "503 queue_full": the status, and the reason that the server's error names.
std::string status_of(const http1::ClientResponse& response) {
  std::string status = std::to_string(response.status);
  constexpr std::string_view kKey = "\"reason\":\"";
  const size_t found = response.body.find(kKey);
  if (found == std::string_view::npos) return status;
  const std::string_view rest = response.body.substr(found + kKey.size());
  return status + " " + std::string(rest.substr(0, std::min<size_t>(rest.find('"'), 40)));
}

struct Connection {
  int socket = -1;
  http1::ResponseParser parser;
  std::string_view unsent;
  bool busy = false;
  Duration intended;
};

class HttpLoad {
 public:
  HttpLoad(const LoadTarget& target, const LoadPlan& plan, const ports::Clock& clock)
      : plan_(plan), clock_(clock), tally_(plan), connections_(plan.connections) {
    for (const auto& request : plan.requests) messages_.push_back(render(target, *request));
  }
  ~HttpLoad() {
    for (Connection& connection : connections_) close_socket(connection);
    if (epoll_ >= 0) close(epoll_);
  }
  HttpLoad(const HttpLoad&) = delete;
  HttpLoad& operator=(const HttpLoad&) = delete;

  Result<LoadResult, std::string> run(const addrinfo& address) {
    address_ = &address;
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0) return fail(std::string("no epoll descriptor can be made"));
    prctl(PR_SET_TIMERSLACK, 1UL);  // the default of 50 µs would be lateness
    for (size_t i = 0; i < connections_.size(); ++i) {
      open(i);
      idle_.push_back(connections_.size() - 1 - i);
    }
    // A moment for the connections to be made.
    start_ = clock_.now() + Duration::ms(20);
    const Duration end = (plan_.sends.empty() ? Duration() : plan_.sends.back()) + plan_.patience;
    while (next_ < plan_.sends.size() || outstanding() > 0) {
      if (now() > end) break;
      send_due();
      wait(next_ < plan_.sends.size() ? plan_.sends[next_] : end);
    }
    give_up();
    return tally_.take();
  }

 private:
  [[nodiscard]] Duration now() const { return clock_.now() - start_; }
  [[nodiscard]] size_t outstanding() const { return busy_ + waiting_.size(); }

  void send_due() {
    while (next_ < plan_.sends.size() && plan_.sends[next_] <= now()) {
      const Duration intended = plan_.sends[next_++];
      if (outstanding() >= plan_.outstanding_max) {
        tally_.failed(intended, "overflow");
      } else {
        waiting_.push_back(intended);
      }
    }
    while (!waiting_.empty() && !idle_.empty()) {
      const size_t index = idle_.back();
      const Duration intended = waiting_.front();
      idle_.pop_back();
      waiting_.pop_front();
      begin(index, intended);
    }
  }

  void wait(Duration until) {
    const int64_t left = std::max<int64_t>((until - now()).ns(), 0);
    const timespec limit{left / 1'000'000'000, left % 1'000'000'000};
    std::array<epoll_event, kEvents> events;
    const int count = epoll_pwait2(epoll_, events.data(), kEvents, &limit, nullptr);
    for (int i = 0; i < count; ++i) on_ready(events[static_cast<size_t>(i)].data.u64);
  }

  void open(size_t index) {
    Connection& connection = connections_[index];
    connection.parser = http1::ResponseParser();
    connection.socket = socket(address_->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connection.socket < 0) return;
    const int on = 1;
    setsockopt(connection.socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.u64 = index;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.socket, &event);
    // Whether it succeeds is seen when the socket becomes ready.
    static_cast<void>(connect(connection.socket, address_->ai_addr, address_->ai_addrlen));
  }

  static void close_socket(Connection& connection) {
    if (connection.socket >= 0) close(connection.socket);
    connection.socket = -1;
  }

  void begin(size_t index, Duration intended) {
    Connection& connection = connections_[index];
    if (connection.socket < 0) open(index);
    connection.busy = true;
    ++busy_;
    connection.intended = intended;
    connection.unsent = messages_[turn_++ % messages_.size()];
    tally_.sent(intended, now());
    if (!flush(connection)) broken(index, "no connection");
  }

  // False when the connection cannot be used any more.
  static bool flush(Connection& connection) {
    while (!connection.unsent.empty()) {
      const ssize_t sent = ::send(connection.socket, connection.unsent.data(),
                                  connection.unsent.size(), MSG_NOSIGNAL);
      if (sent < 0) return errno == EAGAIN || errno == EINTR;
      connection.unsent.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  void on_ready(size_t index) {
    Connection& connection = connections_[index];
    if (connection.socket < 0) return;
    if (!flush(connection)) return broken(index, "connection broken");
    while (connection.socket >= 0) {
      const std::span<char> room = connection.parser.prepare();
      const ssize_t got = recv(connection.socket, room.data(), room.size(), 0);
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) return broken(index, "connection closed");
      connection.parser.commit(static_cast<size_t>(got));
      if (!parse(index)) return;
      if (static_cast<size_t>(got) < room.size()) return;  // read empty: the next edge tells
    }
  }

  // False when the connection is not to be read any further.
  bool parse(size_t index) {
    Connection& connection = connections_[index];
    Event event = connection.parser.next();
    while (event == Event::kContinue) event = connection.parser.next();
    if (event == Event::kNeedMore) return true;
    if (event == Event::kRefused || !connection.busy) {
      broken(index, "unreadable answer");
      return false;
    }
    const http1::ClientResponse response = connection.parser.take();
    if (response.status == 200) {
      tally_.answered(connection.intended, now());
    } else {
      tally_.failed(connection.intended, status_of(response));
    }
    if (!response.keep_alive) close_socket(connection);
    finish(index);
    return false;
  }

  void broken(size_t index, const std::string& why) {
    Connection& connection = connections_[index];
    close_socket(connection);
    if (!connection.busy) return;  // opened again when it is needed
    tally_.failed(connection.intended, why);
    finish(index);
  }

  void finish(size_t index) {
    connections_[index].busy = false;
    --busy_;
    idle_.push_back(index);
  }

  void give_up() {
    for (const Connection& connection : connections_) {
      if (connection.busy) tally_.failed(connection.intended, "no answer");
    }
    for (const Duration intended : waiting_) tally_.failed(intended, "never sent");
    for (; next_ < plan_.sends.size(); ++next_) tally_.failed(plan_.sends[next_], "never sent");
  }

  const LoadPlan& plan_;
  const ports::Clock& clock_;
  const addrinfo* address_ = nullptr;
  Tally tally_;
  std::vector<std::string> messages_;
  std::vector<Connection> connections_;
  std::vector<size_t> idle_;
  std::deque<Duration> waiting_;  // for a connection
  size_t busy_ = 0;
  size_t next_ = 0;  // of the schedule
  size_t turn_ = 0;
  int epoll_ = -1;
  Instant start_;
};

}  // namespace

Result<LoadResult, std::string> run_http_load(const LoadTarget& target, const LoadPlan& plan,
                                              const ports::Clock& clock) {
  BATON_CHECK(!plan.requests.empty() && plan.connections > 0);
  BATON_ASSIGN(const Addresses addresses, resolve(target));
  return HttpLoad(target, plan, clock).run(*addresses);
}

}  // namespace baton::adapters::load
