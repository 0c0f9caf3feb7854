// How late a request is told that its deadline passed in the queue, while the model's only instance
// is busy; beside it a bare timer of this process, which shows what the machine itself adds.

#include <sys/prctl.h>

#include <array>
#include <thread>

#include "adapters/onnx/testing/onnx_writer.h"
#include "protocol/oip/client.h"
#include "support/http_exchange.h"
#include "support/load.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<int64_t, 4> kSizes = {512, 2048, 2048, 16};
constexpr int64_t kLongRows = 512;  // about 0.1 s of one core
constexpr auto kTimeout = std::chrono::milliseconds(20);

// `timeout` in the request's parameters, in microseconds, when it is not zero.
std::string message(int64_t rows, std::chrono::microseconds timeout) {
  const auto request = bench::requests_of({{rows, 512}}).front();
  auto encoded = baton::protocol::oip::encode_infer_request(request->inputs);
  if (timeout.count() > 0) {
    const std::string added = "\"timeout\":" + std::to_string(timeout.count()) + ",";
    encoded.body.insert(encoded.body.find("\"binary_data_output\""), added);
    encoded.header_length += added.size();
  }
  return bench::post("/v2/models/mlp/infer", encoded.body, encoded.header_length);
}

double lateness_ms(Clock::time_point due) {
  return std::chrono::duration<double, std::milli>(Clock::now() - due).count();
}

// Keeps the instance busy from two connections: one runs, one waits.
class Occupation {
 public:
  explicit Occupation(uint16_t port) {
    for (std::thread& thread : threads_) {
      thread = std::thread([this, port] {
        bench::HttpExchange exchange(port);
        const std::string request = message(kLongRows, {});
        while (!stop_.load()) {
          if (exchange.ask(request).status != 200) bench::die("a long request failed");
        }
      });
    }
  }
  ~Occupation() {
    stop_.store(true);
    for (std::thread& thread : threads_) thread.join();
  }
  Occupation(const Occupation&) = delete;
  Occupation& operator=(const Occupation&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::array<std::thread, 2> threads_;
};

}  // namespace

int main() {
  prctl(PR_SET_TIMERSLACK, 1UL);
  const bench::TemporaryFolder repository;
  bench::write_model(repository.path(), "mlp", baton::adapters::onnx::testing::mlp_model(kSizes),
                     "max_batch_size: 0\n");
  const bench::ServerProcess server(repository.path());
  const Occupation occupation(server.http_port());
  bench::HttpExchange exchange(server.http_port());
  const std::string request = message(1, kTimeout);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));

  const size_t count = bench::smoke() ? 10 : 1000;
  std::vector<double> replies, timers;
  size_t served = 0;
  for (size_t i = 0; i < count + served && i < 4 * count; ++i) {
    const auto due = Clock::now() + kTimeout;
    const auto answer = exchange.ask(request);
    if (answer.status == 200) {
      ++served;  // it ran in time: an instance was free for a moment
      continue;
    }
    replies.push_back(lateness_ms(due));
    const auto wake = Clock::now() + std::chrono::milliseconds(2);
    std::this_thread::sleep_until(wake);
    timers.push_back(lateness_ms(wake));
  }
  char text[200];
  std::snprintf(
      text, sizeof text,
      "%zu expired; late by p50 %.2f ms, p99 %.2f ms; a bare timer p50 %.2f ms, p99 %.2f ms",
      replies.size(), bench::median(replies), bench::quantile(replies, 0.99), bench::median(timers),
      bench::quantile(timers, 0.99));
  bench::print({.name = "deadline_reply",
                .method =
                    "replies to requests whose 20 ms pass in the queue while the only instance "
                    "runs; ms from the deadline to the reply's arrival, p99",
                .measured = bench::quantile(replies, 0.99),
                .to_reach = 5,
                .detail = text});
}
