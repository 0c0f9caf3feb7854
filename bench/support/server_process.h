#pragma once
// A baton of this build tree as a child process, and what it serves.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "domain/latency_curve.h"

namespace bench {

// A folder that is gone with this object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// REPOSITORY/NAME/config.pbtxt and REPOSITORY/NAME/1/model.onnx.
void write_model(const std::string& repository, const std::string& name, const std::string& onnx,
                 const std::string& config);

struct ModelReport {
  std::string state;
  uint64_t items = 0;
  uint64_t executions = 0;
  baton::LatencyCurve curve;
};

class ServerProcess {
 public:
  struct Options {
    std::vector<std::string> arguments{};  // more of them, for `baton serve`
    std::vector<std::string> wrapper{};    // before the command: valgrind and its options
    std::string binary{};                  // empty: server_binary()
  };
  // Serves a repository and returns when every model is ready.
  explicit ServerProcess(const std::string& repository) : ServerProcess(repository, Options{}) {}
  ServerProcess(const std::string& repository, const Options& options);
  ~ServerProcess();  // SIGTERM, then waits
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  [[nodiscard]] uint16_t http_port() const { return http_; }
  [[nodiscard]] uint16_t grpc_port() const { return grpc_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] ModelReport report(const std::string& model) const;

 private:
  void wait_for_ports(const std::string& file);
  void wait_until_ready() const;

  TemporaryFolder folder_;
  pid_t pid_ = -1;
  uint16_t http_ = 0;
  uint16_t grpc_ = 0;
  uint16_t metrics_ = 0;
};

// The baton of this build tree.
[[nodiscard]] std::string server_binary();
// Where ONNX Runtime's library is, by the server's own rules.
[[nodiscard]] std::string ort_library();

}  // namespace bench
