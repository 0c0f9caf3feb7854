#include "app/worker.h"

#include <pthread.h>

#include <string>
#include <utility>

namespace baton::app {
namespace {

constexpr size_t kRing = 1024;
constexpr size_t kFileRing = 8192;  // refusals on their way to the file, and their inputs

service::DecisionFile make_file(const service::DecisionRing& ring,
                                const service::GatewayOptions& options) {
  auto writer = protocol::decision_log::LineWriter::of_worker(options.worker);
  std::string setup =
      writer.setup(AdmissionSetup{options.limits.max_in_flight, options.limits.max_bytes});
  return {ring, std::move(writer), std::move(setup)};
}

}  // namespace

Worker::Worker(const WorkerPorts& ports, const service::GatewayOptions& options)
    : number_(options.worker),
      access_log_(ports.clock, ports.access_log),
      decisions_(kRing, ports.decisions_to_file ? kFileRing : 0),
      decision_file_(make_file(decisions_, options)),
      gateway_(
          {ports.clock, loop_, loop_, ports.models, ports.telemetry, access_log_, &decisions_,
           ports.answers, ports.shared_memory, ports.json_readers, ports.log_control, ports.traces},
          options),
      http_({gateway_, ports.clock, ports.telemetry, loop_, ports.access, ports.json_readers,
             ports.json_writers, ports.body_bytes_max, ports.repository, ports.forward_headers}),
      typed_(gateway_, ports.access, ports.repository) {}

Worker::~Worker() {
  join();
}

void Worker::follow(std::move_only_function<void()> done) {
  loop_.post([this, done = std::move(done)]() mutable {
    static_cast<void>(gateway_.directory());
    done();
  });
}

void Worker::start() {
  thread_ = std::thread([this] { loop_.run(); });
  const std::string name = "baton-w" + std::to_string(number_);
  pthread_setname_np(thread_.native_handle(), name.c_str());
}

void Worker::join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace baton::app
