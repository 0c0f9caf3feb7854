// p99 of the add model while a perceptron of 38 MB is loaded and unloaded in a loop, over p99
// beside a copy of memory at idle priority that is busy for the same share of the time.

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>

#include "adapters/onnx/testing/onnx_writer.h"
#include "support/http_exchange.h"
#include "support/load.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<int64_t, 5> kSizes = {512, 2048, 2048, 2048, 16};  // 38 MB
constexpr double kRate = 500;
constexpr std::chrono::milliseconds kCopyPeriod(20);

double window_seconds() {
  return bench::smoke() ? 0.3 : 3;
}

// CPU seconds of a process so far.
double cpu_seconds(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  text.erase(0, text.rfind(')') + 2);
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return (std::stod(words[11]) + std::stod(words[12])) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Work on a thread of its own, until the object goes.
class Beside {
 public:
  template <class Work>
  explicit Beside(Work work) : thread_([this, work] { work(stop_); }) {}
  ~Beside() {
    stop_.store(true);
    thread_.join();
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

void command(bench::HttpExchange& exchange, const std::string& what) {
  const auto answer =
      exchange.ask(bench::post("/v2/repository/models/mlp/" + what, "{}", size_t{0}));
  if (answer.status != 200) bench::die(what + ": " + std::string(answer.body));
}

void reload_in_a_loop(uint16_t port, std::atomic<bool>& stop, std::atomic<uint64_t>& loads) {
  bench::HttpExchange exchange(port);
  while (!stop.load()) {
    command(exchange, "load");
    command(exchange, "unload");
    ++loads;
  }
}

// Copies 38 MB again and again, `duty` of each period.
void copy_in_a_loop(double duty, std::atomic<bool>& stop) {
  const sched_param none{};
  pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
  std::vector<char> from(38'000'000, 'a');
  std::vector<char> to(from.size());
  constexpr size_t kPiece = 256 << 10;
  size_t at = 0;
  while (!stop.load()) {
    const auto begin = Clock::now();
    const auto busy = std::chrono::duration<double>(kCopyPeriod) * duty;
    while (Clock::now() - begin < busy) {
      std::memcpy(to.data() + at, from.data() + at, kPiece);
      at = at + 2 * kPiece > from.size() ? 0 : at + kPiece;
    }
    std::this_thread::sleep_until(begin + kCopyPeriod);
  }
}

struct Window {
  double p99_ms = 0;
  double p50_ms = 0;
  double cpu_share = 0;  // of the server, in cores
};

Window measure(const bench::ServerProcess& server, uint64_t seed) {
  const baton::adapters::transport::SteadyClock clock;
  bench::load::LoadPlan plan;
  baton::Random random(seed);
  plan.sends =
      bench::load::poisson_arrivals(kRate, baton::Duration::from_seconds(window_seconds()), random);
  baton::ModelConfig add;
  add.inputs = {{.name = "INPUT0", .type = baton::DataType::kInt32, .dims = {1, 16}},
                {.name = "INPUT1", .type = baton::DataType::kInt32, .dims = {1, 16}}};
  plan.requests = {baton::service::synthetic_request(add, 1, random)};
  plan.connections = 20;
  const double before = cpu_seconds(server.pid());
  const auto begin = Clock::now();
  const auto result = bench::need(
      bench::load::run_http_load({"127.0.0.1", server.http_port(), "add"}, plan, clock));
  if (result.failed() > 0) bench::die("a request failed");
  return {bench::p99_ms(result), result.latency.quantile(0.5).seconds() * 1e3,
          (cpu_seconds(server.pid()) - before) / bench::seconds_since(begin)};
}

}  // namespace

int main() {
  const bench::TemporaryFolder repository;
  bench::write_model(repository.path(), "add", baton::adapters::onnx::testing::add_sub_model(),
                     "max_batch_size: 8\n");
  bench::write_model(repository.path(), "mlp", baton::adapters::onnx::testing::mlp_model(kSizes),
                     "max_batch_size: 32\ndynamic_batching {}\n");
  const bench::ServerProcess server(
      repository.path(), {.arguments = {"--repository-control=explicit", "--load-model=add"},
                          .wrapper = {},
                          .binary = {}});
  std::atomic<uint64_t> loads = 0;
  const auto reloading = [&](std::atomic<bool>& stop) {
    reload_in_a_loop(server.http_port(), stop, loads);
  };
  const double quiet = measure(server, 0).cpu_share;
  double duty = 0;
  {
    const Beside beside(reloading);
    duty = std::clamp(measure(server, 0).cpu_share - quiet, 0.01, 1.0);
  }
  std::vector<double> ratios, loaded, copied, alone;
  const uint64_t windows = bench::smoke() ? 1 : 11;
  for (uint64_t i = 1; i <= windows; ++i) {
    alone.push_back(measure(server, i).p99_ms);
    {
      const Beside beside([&](std::atomic<bool>& stop) { copy_in_a_loop(duty, stop); });
      copied.push_back(measure(server, i).p99_ms);
    }
    const Beside beside(reloading);
    loaded.push_back(measure(server, i).p99_ms);
    ratios.push_back(loaded.back() / copied.back());
  }
  char text[240];
  std::snprintf(text, sizeof text,
                "p99 %.2f ms while %lu loads are made, %.2f ms beside a copy of %.0f %% of a core, "
                "%.2f ms alone; ratios from %.2f to %.2f",
                bench::median(loaded), static_cast<unsigned long>(loads.load()),
                bench::median(copied), duty * 100, bench::median(alone), bench::quantile(ratios, 0),
                bench::quantile(ratios, 1));
  bench::print({.name = "reload_p99",
                .method =
                    "add model, Poisson arrivals of 500/s over 20 connections; windows of 3 s "
                    "take turns: alone, beside a memory copy at idle priority, and while a "
                    "perceptron of 38 MB is loaded and unloaded over HTTP; median of the "
                    "ratios of p99",
                .measured = bench::median(ratios),
                .to_reach = 1.2,
                .detail = text});
}
