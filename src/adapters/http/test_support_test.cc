// The helpers of this room's tests; compiled into the test program only.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

#include "adapters/http/test_support.h"

namespace baton::adapters::http {

using protocol::http1::ExchangeId;
using protocol::http1::HttpRequest;
using protocol::http1::HttpResponder;
using protocol::http1::HttpResponse;

std::optional<HttpResponse> TestHandler::on_head(const HttpRequest& head,
                                                 std::optional<uint64_t> /*length*/) {
  if (head.target != "/refuse") return std::nullopt;
  HttpResponse response;
  response.status = 401;
  response.body = "no";
  return response;
}

void TestHandler::on_request(ExchangeId id, HttpRequest request, HttpResponder& responder) {
  requests.fetch_add(1);
  HttpResponse response;
  response.content_type = "text/plain";
  if (request.target == "/never") return;
  if (request.target.starts_with("/big?")) {
    response.body.assign(std::stoul(std::string(request.target.substr(5))), 'x');
  } else if (request.target == "/parts") {
    response.body = "one ";
    auto storage = std::make_shared<std::string>("two three");
    const auto bytes = std::as_bytes(std::span(*storage));
    response.parts = {bytes.first(4), bytes.subspan(4)};
    response.storage.push_back(std::move(storage));
  } else if (request.target == "/nothing") {
    response.status = 204;
  } else {
    response.body = std::string(request.body);
  }
  if (request.target != "/later") return responder.respond(id, std::move(response));
  loop_.post([id, &responder, response = std::move(response)]() mutable {
    responder.respond(id, std::move(response));
  });
}

void TestHandler::on_client_gone(ExchangeId /*id*/) {
  gone.fetch_add(1);
}

HttpResponse TestHandler::render_codec_error(int status, std::string_view message) {
  refused.fetch_add(1);
  HttpResponse response;
  response.status = status;
  response.content_type = "text/plain";
  response.body = std::string(message);
  return response;
}

TestServer::TestServer(HttpServerOptions options, size_t workers) {
  std::vector<HttpWorker> bindings;
  for (size_t i = 0; i < workers; ++i) {
    loops_.push_back(std::make_unique<WorkerLoop>());
    handlers_.push_back(std::make_unique<TestHandler>(*loops_.back()));
    bindings.push_back({loops_.back().get(), handlers_.back().get()});
  }
  server_ = std::make_unique<HttpServer>(std::move(options), bindings, clock_);
  port_ = server_->listen().value();
  for (auto& loop : loops_) threads_.emplace_back([target = loop.get()] { target->run(); });
}

TestServer::~TestServer() {
  for (auto& loop : loops_) loop->stop();
  for (auto& thread : threads_) thread.join();
  server_.reset();
}

void TestServer::start_drain(Duration patience) {
  server_->drain(clock_.now() + patience, [this] { drained_.store(true); });
}

void TestServer::drain(Duration patience) {
  start_drain(patience);
  eventually([this] { return drained(); });
}

bool TestServer::eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 2500; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return condition();
}

TestClient::TestClient(uint16_t port, int receive_buffer) {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receive_buffer > 0) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
  }
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  connect_existing(port);
}

bool TestClient::connect_existing(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  return connected_;
}

TestClient::~TestClient() {
  close();
}

void TestClient::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

bool TestClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

void TestClient::shut_down_sending() {
  ::shutdown(socket_, SHUT_WR);
}

bool TestClient::fill() {
  std::array<char, 65536> bytes;
  pollfd wait{.fd = socket_, .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, 10'000) <= 0) return false;
  const ssize_t count = ::recv(socket_, bytes.data(), bytes.size(), 0);
  if (count <= 0) return false;
  buffer_.append(bytes.data(), static_cast<size_t>(count));
  return true;
}

TestResponse TestClient::receive(bool head_only) {
  TestResponse response;
  while (true) {
    size_t end = 0;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (!fill()) return response;
    }
    response.head = buffer_.substr(0, end + 4);
    buffer_.erase(0, end + 4);
    if (!response.head.starts_with("HTTP/1.1 100")) break;
    ++continues_;
  }
  const size_t field = response.head.find("\r\nContent-Length: ");
  size_t length = 0;
  if (field != std::string::npos && !head_only)
    length = std::stoul(response.head.substr(field + 18));
  while (buffer_.size() < length) {
    if (!fill()) return response;
  }
  response.body = buffer_.substr(0, length);
  buffer_.erase(0, length);
  response.status = std::stoi(response.head.substr(9, 3));
  return response;
}

bool TestClient::receive_continue(int ms) {
  pollfd wait{.fd = socket_, .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, ms) <= 0 || !fill()) return false;
  if (!buffer_.starts_with("HTTP/1.1 100 Continue\r\n\r\n")) return false;
  buffer_.erase(0, 25);
  return true;
}

bool TestClient::closed_within(int ms) {
  if (socket_ < 0 || !buffer_.empty()) return false;
  pollfd wait{.fd = socket_, .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, ms) <= 0) return false;
  char byte = 0;
  return ::recv(socket_, &byte, 1, 0) <= 0;
}

}  // namespace baton::adapters::http
