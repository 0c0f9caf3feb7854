#pragma once

#include <memory>
#include <thread>

#include "adapters/transport/steady_clock.h"
#include "adapters/transport/worker_loop.h"
#include "domain/server_config.h"
#include "ports/log_sink.h"
#include "ports/model_directory.h"
#include "ports/repository_control.h"
#include "service/access/access_control.h"
#include "service/gateway/gateway.h"
#include "service/gateway/http_front.h"
#include "service/gateway/typed_front.h"
#include "service/telemetry/decision_ring.h"

namespace baton::app {

struct WorkerPorts {
  const ports::Clock& clock;
  const ports::ModelDirectory& models;
  service::Telemetry& telemetry;
  ByteBudget* answers = nullptr;
  ports::JobRunner* json_readers = nullptr;
  ports::JobRunner* json_writers = nullptr;
  ports::RepositoryControl* repository = nullptr;
  const service::AccessControl* access = nullptr;
  ports::LogSink* access_log = nullptr;
  bool decisions_to_file = false;
  uint64_t body_bytes_max = 0;
  ports::SharedMemory* shared_memory = nullptr;
  ports::LogControl* log_control = nullptr;
  const HeaderPatterns* forward_headers = nullptr;  // null: none
  ports::TraceControl* traces = nullptr;            // null: not offered
};

// One gateway worker: its loop, its gateway and its fronts, on a thread of its own.
class Worker final : public ports::DirectoryFollower {
 public:
  Worker(const WorkerPorts& ports, const service::GatewayOptions& options);
  ~Worker() override;

  void follow(std::move_only_function<void()> done) override;
  void start();
  // Joins the thread; the loop has been told to stop.
  void join();

  [[nodiscard]] adapters::transport::WorkerLoop& loop() { return loop_; }
  [[nodiscard]] service::HttpFront& http() { return http_; }
  [[nodiscard]] service::TypedFront& typed() { return typed_; }
  // The controller's thread. Writes what admission has decided since the last call, and how many
  // records were missed.
  uint64_t write_decisions(ports::LogSink& sink) { return decision_file_.write_new(sink); }

 private:
  const size_t number_;
  adapters::transport::WorkerLoop loop_;
  service::AccessLog access_log_;
  service::DecisionRing decisions_;
  service::DecisionFile decision_file_;
  service::Gateway gateway_;
  service::HttpFront http_;
  service::TypedFront typed_;
  std::thread thread_;
};

}  // namespace baton::app
