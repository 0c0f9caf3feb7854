#include "app/worker.h"

#include <pthread.h>

#include <string>

namespace baton::app {

Worker::Worker(const WorkerPorts& ports, const service::GatewayOptions& options)
    : number_(options.worker),
      access_log_(ports.clock, ports.access_log),
      gateway_({ports.clock, loop_, loop_, ports.models, ports.telemetry, access_log_}, options),
      http_(gateway_, ports.clock, ports.telemetry, ports.access),
      typed_(gateway_, ports.clock, ports.access) {}

Worker::~Worker() {
  join();
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
