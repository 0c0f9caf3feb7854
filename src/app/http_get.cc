#include "app/http_get.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace baton::app {
namespace {

namespace http1 = protocol::http1;

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

Result<int, std::string> connect_to(const std::string& host, uint16_t port, Duration timeout) {
  const std::string place = host + ":" + std::to_string(port);
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return fail("\"" + host + "\" is not a numeric address");
  }
  const std::unique_ptr<addrinfo, FreeAddresses> addresses(found);
  const int descriptor = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return fail(std::string("no socket can be made"));
  const timeval limit{timeout.ns() / 1'000'000'000, timeout.ns() / 1000 % 1'000'000};
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (connect(descriptor, found->ai_addr, found->ai_addrlen) != 0) {
    const std::string cause = std::strerror(errno);
    close(descriptor);
    return fail("no baton answers on " + place + ": " + cause);
  }
  return descriptor;
}

// False when the server takes no more: it may have answered already, and closed.
bool send_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

Result<http1::ClientResponse, std::string> receive(int descriptor) {
  http1::ResponseParser parser;
  for (;;) {
    const auto event = parser.next();
    if (event == http1::ResponseParser::Event::kRefused) return fail(parser.error());
    if (event == http1::ResponseParser::Event::kComplete) return parser.take();
    const std::span<char> room = parser.prepare();
    const ssize_t got = recv(descriptor, room.data(), room.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return fail(std::string("no answer within the time allowed"));
    }
    if (got > 0) {
      parser.commit(static_cast<size_t>(got));
      continue;
    }
    if (got == 0 && parser.end() == http1::ResponseParser::Event::kComplete) return parser.take();
    return fail(std::string("the connection ended before the answer did"));
  }
}

}  // namespace

Result<http1::ClientResponse, std::string> http_call(const HttpCall& call) {
  BATON_ASSIGN(const int descriptor, connect_to(call.host, call.port, call.timeout));
  const Socket socket(descriptor);
  const std::string authority = call.host + ":" + std::to_string(call.port);
  http1::ClientRequestHead request;
  request.method = call.method;
  request.target = call.target;
  request.host = authority;
  request.headers = call.headers;
  if (call.body) request.content_length = call.body->size();
  std::string head;
  http1::append_request_head(head, request);
  const bool sent = send_all(socket.get(), head) &&
                    send_all(socket.get(), call.body.value_or(std::string_view()));
  auto answer = receive(socket.get());
  if (!answer.has_value() && !sent) return fail(std::string("the request could not be sent"));
  return answer;
}

Result<std::string, std::string> http_get(const std::string& host, uint16_t port,
                                          const std::string& target, Duration timeout,
                                          const std::string& api_key) {
  HttpCall call{.host = host, .port = port, .target = target, .timeout = timeout};
  if (!api_key.empty()) call.headers.push_back({"X-API-Key", api_key});
  BATON_ASSIGN(const http1::ClientResponse response, http_call(call));
  if (response.status != 200) {
    return fail("status " + std::to_string(response.status) + ": " + std::string(response.body));
  }
  return std::string(response.body);
}

}  // namespace baton::app
