#pragma once
// For tests of this room: a server on its own threads with a scripted handler, and a client on a
// blocking socket.

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "adapters/http/http_server.h"
#include "adapters/transport/steady_clock.h"

namespace baton::adapters::http {

struct TestResponse {
  int status = 0;  // 0: the connection ended before a response
  std::string head;
  std::string body;
  [[nodiscard]] bool has_header(std::string_view line) const {
    return head.find("\r\n" + std::string(line) + "\r\n") != std::string::npos;
  }
};

// Answers by path: /echo gives the body back, /never does not answer, /later answers from a posted
// task, /big?N gives N bytes.
class TestHandler final : public protocol::http1::HttpHandler {
 public:
  explicit TestHandler(WorkerLoop& loop) : loop_(loop) {}
  std::optional<protocol::http1::HttpResponse> on_head(const protocol::http1::HttpRequest& head,
                                                       std::optional<uint64_t> length) override;
  void on_request(protocol::http1::ExchangeId id, protocol::http1::HttpRequest request,
                  protocol::http1::HttpResponder& responder) override;
  void on_client_gone(protocol::http1::ExchangeId id) override;
  protocol::http1::HttpResponse render_codec_error(int status, std::string_view message) override;

  std::atomic<int> requests{0};
  std::atomic<int> gone{0};
  std::atomic<int> refused{0};

 private:
  WorkerLoop& loop_;
};

class TestServer {
 public:
  explicit TestServer(HttpServerOptions options = {}, size_t workers = 1);
  ~TestServer();
  [[nodiscard]] uint16_t port() const { return port_; }
  [[nodiscard]] HttpServer& server() { return *server_; }
  [[nodiscard]] TestHandler& handler(size_t worker = 0) { return *handlers_[worker]; }
  [[nodiscard]] WorkerLoop& loop(size_t worker = 0) { return *loops_[worker]; }
  // Drains and waits until it is done.
  void drain(Duration patience);
  void start_drain(Duration patience);
  [[nodiscard]] bool drained() const { return drained_.load(); }
  // True when `condition` holds within five seconds.
  static bool eventually(const std::function<bool()>& condition);

 private:
  transport::SteadyClock clock_;
  std::vector<std::unique_ptr<WorkerLoop>> loops_;
  std::vector<std::unique_ptr<TestHandler>> handlers_;
  std::unique_ptr<HttpServer> server_;
  std::vector<std::thread> threads_;
  uint16_t port_ = 0;
  std::atomic<bool> drained_{false};
};

class TestClient {
 public:
  explicit TestClient(uint16_t port, int receive_buffer = 0);
  ~TestClient();
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;
  [[nodiscard]] bool connected() const { return connected_; }
  // For a client whose first connection failed: needs no new descriptor.
  bool connect_existing(uint16_t port);
  // False when the server has closed meanwhile.
  bool send(std::string_view bytes);
  void shut_down_sending();
  void close();
  // The next final response; `head_only` for answers to HEAD. 100 Continue is counted and skipped.
  TestResponse receive(bool head_only = false);
  [[nodiscard]] int continues() const { return continues_; }
  // Waits up to `ms` for 100 Continue alone.
  bool receive_continue(int ms);
  // True when the server closes within `ms` and sends nothing more.
  bool closed_within(int ms);

 private:
  bool fill();
  int socket_ = -1;
  bool connected_ = false;
  std::string buffer_;
  int continues_ = 0;
};

}  // namespace baton::adapters::http
