#pragma once
// Internal to this room: the workers in turn.

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "adapters/grpc/grpc_server.h"
#include "adapters/grpc/write_watch.h"

namespace baton::adapters::grpc_api {

struct ServedWorker : GrpcWorker {
  WriteWatch* writes = nullptr;
};

class Workers {
 public:
  Workers(const std::vector<GrpcWorker>& workers, const GrpcServerOptions& options,
          const ports::Clock& clock) {
    for (const GrpcWorker& worker : workers) {
      watches_.push_back(std::make_shared<WriteWatch>(*worker.timers, clock, options.write_stall,
                                                      options.write_stalls));
      workers_.push_back({worker, watches_.back().get()});
    }
  }
  // Any thread.
  [[nodiscard]] const ServedWorker& next() {
    return workers_[next_.fetch_add(1, std::memory_order_relaxed) % workers_.size()];
  }
  [[nodiscard]] size_t size() const { return workers_.size(); }

 private:
  std::vector<ServedWorker> workers_;
  std::vector<std::shared_ptr<WriteWatch>> watches_;
  std::atomic<size_t> next_{0};
};

}  // namespace baton::adapters::grpc_api
