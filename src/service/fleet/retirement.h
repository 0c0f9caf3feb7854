#pragma once
// Takes engines out of service without losing a call.

#include <functional>
#include <list>
#include <memory>

#include "ports/clock.h"
#include "ports/engine_factory.h"
#include "ports/executor.h"
#include "ports/job_runner.h"
#include "ports/model_runtime.h"
#include "service/fleet/fleet_directory.h"

namespace baton::service {

// How often an engine that still holds calls is looked at.
inline constexpr Duration kLookAtDraining = Duration::ms(10);

struct RetirementPorts {
  const ports::Clock& clock;
  ports::Timers& timers;  // of the controller
  ports::Executor& controller;
  ports::EngineFactory& engines;
  ports::JobRunner& chores;  // where threads are joined and memory is freed
  ports::RuntimeLoader& runtime;
};

// Controller thread.
class Retirement {
 public:
  Retirement(const RetirementPorts& ports, const FleetDirectory& directory)
      : ports_(ports), directory_(directory) {}

  // An engine that no published directory names any more. Once nobody can find it, it ends its
  // queued and running calls; then it is freed off this thread, and `gone` hears what it did in
  // all.
  void retire(std::shared_ptr<ports::EnginePort> engine,
              std::move_only_function<void(const ports::EngineStats&)> gone);

 private:
  struct Leaving {
    std::shared_ptr<ports::EnginePort> engine;
    std::move_only_function<void(const ports::EngineStats&)> gone;
    bool unfound = false;  // no follower can call it any more
  };
  void look();
  void arm();
  void free(Leaving leaving);

  RetirementPorts ports_;
  const FleetDirectory& directory_;
  std::list<std::shared_ptr<Leaving>> leaving_;
  bool armed_ = false;
};

}  // namespace baton::service
