// What a server with ten loaded models costs while nobody asks it anything.

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "adapters/onnx/testing/onnx_writer.h"
#include "support/figures.h"
#include "support/server_process.h"

namespace {

// User and system time of a process, in seconds; /proc counts in ticks of 10 ms.
double cpu_seconds(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

int main() {
  const bench::TemporaryFolder repository;
  const std::string model = baton::adapters::onnx::testing::add_sub_model();
  for (int i = 0; i < 10; ++i) {
    bench::write_model(repository.path(), "add" + std::to_string(i), model,
                       "max_batch_size: 8\ndynamic_batching {}\n");
  }
  const bench::ServerProcess server(repository.path());
  std::this_thread::sleep_for(std::chrono::milliseconds(bench::smoke() ? 100 : 1000));
  const double before = cpu_seconds(server.pid());
  const auto begin = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(bench::smoke() ? 200 : 20'000));
  const double spent = cpu_seconds(server.pid()) - before;
  const double seconds = bench::seconds_since(begin);
  char text[120];
  std::snprintf(text, sizeof text, "%.2f s of CPU in %.1f s", spent, seconds);
  bench::print({.name = "idle_cpu_percent",
                .method = "user and system time of the process from /proc over 20 s, ten models "
                          "loaded, no requests; percent of a core",
                .measured = 100 * spent / seconds,
                .to_reach = 0.5,
                .detail = text});
}
