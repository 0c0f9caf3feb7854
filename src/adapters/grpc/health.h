#pragma once
// Internal to this room: grpc.health.v1.Health.

#include <atomic>

#include "adapters/grpc/call.h"

namespace baton::adapters::grpc_api {

struct HealthState {
  const ports::Clock& clock;
  Duration interval;  // between two looks of a watcher
  std::atomic<int> watchers{0};
  std::atomic<bool> draining{false};
};

// `state` outlives the calls.
void add_health_methods(MethodTable& methods, HealthState& state);

}  // namespace baton::adapters::grpc_api
