#include "support/http_exchange.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "support/figures.h"

namespace bench {

namespace http1 = baton::protocol::http1;

HttpExchange::HttpExchange(uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    die("no server answers on port " + std::to_string(port));
  }
}

HttpExchange::~HttpExchange() {
  close(socket_);
}

http1::ClientResponse HttpExchange::ask(const std::string& message) {
  if (send(socket_, message.data(), message.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(message.size())) {
    die("a request could not be sent");
  }
  for (;;) {
    const auto event = parser_.next();
    if (event == http1::ResponseParser::Event::kComplete) return parser_.take();
    if (event == http1::ResponseParser::Event::kRefused) die(parser_.error());
    const std::span<char> room = parser_.prepare();
    const ssize_t got = recv(socket_, room.data(), room.size(), 0);
    if (got <= 0) die("the server closed the connection");
    parser_.commit(static_cast<size_t>(got));
  }
}

std::string post(const std::string& target, const std::string& body, size_t header_length) {
  const std::array<http1::Header, 2> headers = {
      http1::Header{"Inference-Header-Content-Length", std::to_string(header_length)},
      http1::Header{"Content-Type", "application/octet-stream"}};
  http1::ClientRequestHead head;
  head.method = "POST";
  head.target = target;
  head.host = "127.0.0.1";
  head.headers = headers;
  head.content_length = body.size();
  std::string out;
  http1::append_request_head(out, head);
  return out + body;
}

}  // namespace bench
