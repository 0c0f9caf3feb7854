#include "app/http_get.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "protocol/http1/client.h"

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

}  // namespace

Result<std::string, std::string> http_get(const std::string& host, uint16_t port,
                                          const std::string& target, Duration timeout,
                                          const std::string& api_key) {
  BATON_ASSIGN(const int descriptor, connect_to(host, port, timeout));
  const Socket socket(descriptor);
  std::string head;
  const std::string authority = host + ":" + std::to_string(port);
  http1::ClientRequestHead request;
  request.method = "GET";
  request.target = target;
  request.host = authority;
  const std::array<http1::Header, 1> headers = {{{"X-API-Key", api_key}}};
  if (!api_key.empty()) request.headers = headers;
  http1::append_request_head(head, request);
  if (send(socket.get(), head.data(), head.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(head.size())) {
    return fail(std::string("the request could not be sent"));
  }
  http1::ResponseParser parser;
  for (;;) {
    const auto event = parser.next();
    if (event == http1::ResponseParser::Event::kRefused) return fail(parser.error());
    if (event == http1::ResponseParser::Event::kComplete) break;
    const std::span<char> room = parser.prepare();
    const ssize_t got = recv(socket.get(), room.data(), room.size(), 0);
    if (got < 0) return fail(std::string("no answer within the time allowed"));
    if (got == 0) {
      if (parser.end() == http1::ResponseParser::Event::kComplete) break;
      return fail(std::string("the connection ended before the answer did"));
    }
    parser.commit(static_cast<size_t>(got));
  }
  const http1::ClientResponse response = parser.take();
  if (response.status != 200) {
    return fail("status " + std::to_string(response.status) + ": " + std::string(response.body));
  }
  return std::string(response.body);
}

}  // namespace baton::app
