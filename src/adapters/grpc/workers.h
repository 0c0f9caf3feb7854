#pragma once
// Internal to this room: the workers in turn.

#include <atomic>
#include <utility>
#include <vector>

#include "adapters/grpc/grpc_server.h"

namespace baton::adapters::grpc_api {

class Workers {
 public:
  explicit Workers(std::vector<GrpcWorker> workers) : workers_(std::move(workers)) {}
  // Any thread.
  [[nodiscard]] const GrpcWorker& next() {
    return workers_[next_.fetch_add(1, std::memory_order_relaxed) % workers_.size()];
  }
  [[nodiscard]] size_t size() const { return workers_.size(); }

 private:
  std::vector<GrpcWorker> workers_;
  std::atomic<size_t> next_{0};
};

}  // namespace baton::adapters::grpc_api
