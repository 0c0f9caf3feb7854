#include "support/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "app/http_get.h"
#include "app/server.h"
#include "protocol/json/reader.h"
#include "support/figures.h"

namespace bench {
namespace {

namespace fs = std::filesystem;
using baton::protocol::json::JsonParser;
using baton::protocol::json::JsonValue;

constexpr auto kPatience = std::chrono::seconds(120);  // valgrind loads slowly

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool read_point(JsonValue& object, baton::CurvePoint& point) {
  return object.each_field([&](std::string_view key, JsonValue& value) {
    uint64_t batch = 0;
    double us = 0;
    bool ok = true;
    if (key == "batch") {
      ok = value.read_uint64(batch);
      point.batch_size = static_cast<uint32_t>(batch);
    } else if (key == "us") {
      ok = value.read_double(us);
      point.duration = baton::Duration::from_seconds(us * 1e-6);
    }
    point.samples = 1;
    return ok;
  });
}

bool read_version(JsonValue& object, ModelReport& report) {
  return object.each_field([&](std::string_view key, JsonValue& value) {
    if (key == "state") return value.read_string(report.state);
    if (key == "items") return value.read_uint64(report.items);
    if (key == "executions") return value.read_uint64(report.executions);
    if (key != "curve") return true;
    std::vector<baton::CurvePoint> points;
    const bool ok = value.each_element(
        [&](JsonValue& element) { return read_point(element, points.emplace_back()); });
    report.curve = baton::LatencyCurve(std::move(points));
    return ok;
  });
}

bool read_model(JsonValue& object, const std::string& wanted, ModelReport& report) {
  std::string name;
  ModelReport read;
  const bool ok = object.each_field([&](std::string_view key, JsonValue& value) {
    if (key == "name") return value.read_string(name);
    if (key != "versions") return true;
    return value.each_element([&](JsonValue& element) { return read_version(element, read); });
  });
  if (name == wanted) report = std::move(read);
  return ok;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "baton-bench-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) die("no temporary folder can be made");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void write_model(const std::string& repository, const std::string& name, const std::string& onnx,
                 const std::string& config) {
  const fs::path folder = fs::path(repository) / name;
  fs::create_directories(folder / "1");
  std::ofstream(folder / "1" / "model.onnx", std::ios::binary) << onnx;
  std::ofstream(folder / "config.pbtxt") << config;
}

ServerProcess::ServerProcess(const std::string& repository, const Options& options) {
  const std::string ports = folder_.path() + "/ports.json";
  std::vector<std::string> words = options.wrapper;
  for (const std::string& word :
       {options.binary.empty() ? server_binary() : options.binary, std::string("serve"), repository,
        std::string("--http-port=0"), std::string("--grpc-port=0"), std::string("--metrics-port=0"),
        "--ports-file=" + ports, std::string("--lame-duck-ms=0"),
        "--ort-library=" + ort_library()}) {
    words.push_back(word);
  }
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> raw;
  for (std::string& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  const std::string log = folder_.path() + "/log";
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int file = open(log.c_str(), O_CREAT | O_WRONLY, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    execvp(raw.front(), raw.data());
    _exit(127);
  }
  wait_for_ports(ports);
  wait_until_ready();
}

ServerProcess::~ServerProcess() {
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}

void ServerProcess::wait_for_ports(const std::string& file) {
  const auto begin = std::chrono::steady_clock::now();
  while (!fs::exists(file)) {
    if (waitpid(pid_, nullptr, WNOHANG) != 0) {
      die("the server ended at once: " + read_file(folder_.path() + "/log"));
    }
    if (std::chrono::steady_clock::now() - begin > kPatience) die("the server does not start");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  uint64_t http = 0;
  uint64_t grpc = 0;
  uint64_t metrics = 0;
  JsonParser parser;
  const auto parsed = parser.parse_copy(read_file(file), [&](JsonValue& root) {
    return root.each_field([&](std::string_view key, JsonValue& value) {
      if (key == "http") return value.read_uint64(http);
      if (key == "grpc") return value.read_uint64(grpc);
      if (key == "metrics") return value.read_uint64(metrics);
      return true;
    });
  });
  if (!parsed.has_value()) die("the ports file: " + parsed.error().message);
  http_ = static_cast<uint16_t>(http);
  grpc_ = static_cast<uint16_t>(grpc);
  metrics_ = static_cast<uint16_t>(metrics);
}

void ServerProcess::wait_until_ready() const {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const auto ready =
        baton::app::http_get("127.0.0.1", metrics_, "/readyz", baton::Duration::s(30));
    if (ready.has_value()) return;
    if (std::chrono::steady_clock::now() - begin > kPatience) {
      die("the models do not become ready: " + ready.error());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

ModelReport ServerProcess::report(const std::string& model) const {
  const std::string text =
      need(baton::app::http_get("127.0.0.1", metrics_, "/models", baton::Duration::s(10)));
  ModelReport report;
  JsonParser parser;
  const auto parsed = parser.parse_copy(text, [&](JsonValue& root) {
    return root.each_element([&](JsonValue& object) { return read_model(object, model, report); });
  });
  if (!parsed.has_value()) die("the models' report: " + parsed.error().message);
  return report;
}

std::string server_binary() {
  // This program stands one folder deeper.
  return fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "baton";
}

std::string ort_library() {
  const fs::path tree = fs::path(server_binary()).parent_path();
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(tree / "../../.cache/onnxruntime/lib", error)) {
    if (entry.path().filename().string().starts_with("libonnxruntime.so")) return entry.path();
  }
  return baton::app::find_ort_library("");
}

}  // namespace bench
