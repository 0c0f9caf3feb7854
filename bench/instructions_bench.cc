// Instructions that the server executes for a request of the add model over HTTP, by callgrind:
// with histograms and the full access log, over without. The histograms cannot be turned off; what
// one request costs in them is counted by itself, in this program run under callgrind, and taken
// away.

#include <filesystem>
#include <fstream>

#include "adapters/onnx/testing/onnx_writer.h"
#include "service/telemetry/telemetry.h"
#include "support/add_request.h"
#include "support/http_exchange.h"
#include "support/load.h"

namespace {

namespace fs = std::filesystem;

std::string add_post() {
  const auto [body, header_length] = bench::add_request();
  return bench::post("/v2/models/add/infer", body, header_length);
}

void control(const std::string& what, pid_t pid) {
  const std::string command =
      "callgrind_control " + what + " " + std::to_string(pid) + " >/dev/null 2>&1";
  if (std::system(command.c_str()) != 0) bench::die("callgrind_control " + what + " failed");
}

// Debian 12's valgrind cannot read the debug information that clang 19 writes; names suffice.
std::string without_debug_info(const std::string& binary, const std::string& folder) {
  const std::string copy = folder + "/" + fs::path(binary).filename().string();
  const std::string command = "objcopy --strip-debug " + binary + " " + copy;
  if (std::system(command.c_str()) != 0) bench::die("objcopy failed");
  return copy;
}

// The sum of what callgrind wrote below a folder.
double instructions_in(const std::string& folder) {
  double sum = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with("callgrind.out")) continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("totals: ")) sum += std::strtod(line.c_str() + 8, nullptr);
    }
  }
  return sum;
}

std::vector<std::string> callgrind(const std::string& folder) {
  return {"valgrind", "--tool=callgrind", "--callgrind-out-file=" + folder + "/callgrind.out"};
}

size_t request_count() {
  return bench::smoke() ? 50 : 2000;
}

double instructions_a_request(const std::string& repository, std::vector<std::string> arguments) {
  const bench::TemporaryFolder out;
  double before = 0;
  {
    bench::ServerProcess::Options options;
    options.arguments = std::move(arguments);
    options.wrapper = callgrind(out.path());
    options.binary = without_debug_info(bench::server_binary(), out.path());
    const bench::ServerProcess server(repository, options);
    bench::HttpExchange exchange(server.http_port());
    const std::string request = add_post();
    for (size_t i = 0; i < request_count(); ++i) {
      if (exchange.ask(request).status != 200) bench::die("a request failed");
    }
    control("--dump", server.pid());  // and counts from zero
    before = instructions_in(out.path());
    for (size_t i = 0; i < request_count(); ++i) exchange.ask(request);
    control("--dump", server.pid());
    const double all = instructions_in(out.path()) - before;
    if (before <= 0 || all <= 0) bench::die("callgrind wrote nothing");
    return all / static_cast<double>(request_count());
  }
}

constexpr int kCounted = 1000;

double telemetry_instructions() {
  const bench::TemporaryFolder out;
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  std::string command;
  for (const std::string& word : callgrind(out.path())) command += word + " ";
  command += "--toggle-collect=count_one_request " + without_debug_info(self, out.path()) +
             " --count-telemetry >/dev/null 2>&1";
  if (std::system(command.c_str()) != 0) bench::die("counting the telemetry failed");
  return instructions_in(out.path()) / kCounted;
}

}  // namespace

// What the gateway counts for one successful request. Found by its name.
extern "C" [[gnu::noinline]] void count_one_request(baton::service::Telemetry& telemetry,
                                                    baton::Duration total) {
  telemetry.cells(0, 0).started.add();
  baton::service::ModelCells& cells = telemetry.cells(0, 0);
  cells.ended[0].add();
  cells.items_done.add(1);
  cells.total.record(total);
  cells.queue.record(total / 10);
  cells.compute.record(total / 2);
  cells.compute_input_ns.add(1000);
  cells.compute_output_ns.add(1000);
}

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--count-telemetry") {
    baton::service::Telemetry telemetry(1);
    if (!telemetry.slot_for("add", 1)) return 1;
    for (int i = 0; i < kCounted; ++i) count_one_request(telemetry, baton::Duration::us(20 + i));
    return 0;
  }
  if (std::system("command -v callgrind_control >/dev/null") != 0) {
    std::puts("instructions: skipped, valgrind is not installed");
    return 0;
  }
  const bench::TemporaryFolder repository;
  bench::write_model(repository.path(), "add", baton::adapters::onnx::testing::add_sub_model(),
                     "max_batch_size: 8\ndynamic_batching {}\n");
  const double histograms = telemetry_instructions();
  const double without = instructions_a_request(repository.path(), {});
  const bench::TemporaryFolder logs;
  const double with =
      instructions_a_request(repository.path(), {"--access-log=" + logs.path() + "/access"});
  char text[200];
  std::snprintf(text, sizeof text,
                "%.0f instructions a request with both; %.0f without the log, of which histograms "
                "and counters %.0f",
                with, without, histograms);
  bench::print({.name = "observability_instructions",
                .method = "callgrind over 2000 requests of the add model over HTTP, the whole "
                          "process; with log and histograms over without",
                .measured = with / (without - histograms),
                .to_reach = 1.05,
                .detail = text});
}
