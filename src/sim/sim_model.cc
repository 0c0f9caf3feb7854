#include "sim/sim_model.h"

#include <algorithm>

namespace baton::sim {
namespace {

// A run that is terminated returns at the next node of its graph.
constexpr Duration kTerminateDelay = Duration::us(100);

}  // namespace

service::DispatcherOptions SimModel::dispatcher_options(const ModelSpec& spec) {
  service::DispatcherOptions options;
  options.config = spec.config;
  options.limits = spec.limits;
  options.rank = spec.rank;
  if (spec.measured) options.curve = spec.device;
  return options;
}

bool SimPermits::request(Instant deadline, std::function<void()> granted) {
  const ports::PermitTicket ticket = next_++;
  if (policy_.request(ticket, deadline)) return true;
  waiting_.emplace(ticket, std::move(granted));
  return false;
}

void SimPermits::give_back() {
  const auto ticket = policy_.give_back();
  if (!ticket) return;
  auto node = waiting_.extract(*ticket);
  world_.at(world_.now(), [granted = std::move(node.mapped())] { granted(); }, kRunPriority);
}

SimModel::SimModel(const ModelSpec& spec, const SimModelParts& parts, uint64_t seed)
    : spec_(spec),
      parts_(parts),
      dispatcher_(dispatcher_options(spec), parts.decisions),
      instances_(std::max(spec.config.instance_count, 1U)),
      random_(seed, 3) {
  for (ports::InstanceIndex i = 0; i < instances_.size(); ++i) wake(i, Duration());
}

ports::Submitted SimModel::submit(ports::DispatchedCall& call) {
  const ports::Submitted submitted = dispatcher_.submit(call, parts_.world.now());
  if (submitted.accepted && submitted.wake) {
    wake(submitted.instance, submitted.inline_run ? Duration() : parts_.hand_over);
  }
  return submitted;
}

void SimModel::abort(ports::CallId id, EndReason reason, ports::AbortScope scope) {
  const auto aborted = dispatcher_.abort(id, reason, scope, parts_.world.now(), ended_);
  tell();
  if (!aborted.terminate) return;
  Instance& instance = instances_[aborted.instance];
  instance.terminated = true;
  parts_.world.cancel(instance.pending);
  instance.pending = parts_.world.at(
      parts_.world.now() + kTerminateDelay, [this, index = aborted.instance] { finish(index); },
      kRunPriority);
}

void SimModel::close() {
  dispatcher_.close(EndReason::kShuttingDown, parts_.world.now(), ended_);
  tell();
}

void SimModel::wake(ports::InstanceIndex index, Duration after) {
  Instance& instance = instances_[index];
  parts_.world.cancel(instance.pending);
  instance.pending =
      parts_.world.at(parts_.world.now() + after, [this, index] { ask(index); }, kRunPriority);
}

void SimModel::ask(ports::InstanceIndex index) {
  Instance& instance = instances_[index];
  const Instant urgency = dispatcher_.most_urgent();
  if (!urgency.is_never() && !instance.permit) {
    dispatcher_.will_ask(index);
    instance.permit = true;
    const bool granted = parts_.permits.request(urgency, [this, index] { ask(index); });
    if (!granted) return;  // it is given with the call
  }
  const ports::NextBatch next = dispatcher_.next(index, parts_.world.now(), instance.batch, ended_);
  tell();
  if (next.wake) wake(next.instance, parts_.hand_over);
  if (instance.batch.formed()) {
    parts_.listener.on_batch(instance.batch, spec_.config);
    instance.pending = parts_.world.at(
        parts_.world.now() + run_time(instance.batch.items), [this, index] { finish(index); },
        kRunPriority);
    return;
  }
  give_back(instance);
  if (next.ask_again.is_never()) return;
  instance.pending = parts_.world.at(next.ask_again, [this, index] { ask(index); }, kRunPriority);
}

void SimModel::finish(ports::InstanceIndex index) {
  Instance& instance = instances_[index];
  Result<ports::BatchResult, ports::RunFailure> outcome;
  if (instance.terminated) {
    outcome = fail(ports::RunFailure{.terminated = true, .message = "terminated"});
  } else if (spec_.failure > 0 && random_.chance(spec_.failure)) {
    outcome = fail(ports::RunFailure{.message = "the run failed"});
  } else {
    outcome->results.resize(instance.batch.members.size());
  }
  instance.terminated = false;
  dispatcher_.finish(index, instance.batch, outcome, parts_.world.now(), ended_);
  tell();
  if (!outcome && !outcome.error().terminated) parts_.listener.on_retried(instance.batch);
  instance.batch.members.clear();
  if (parts_.permits.contended(dispatcher_.most_urgent())) give_back(instance);
  ask(index);
}

void SimModel::tell() {
  if (ended_.empty()) return;
  parts_.listener.on_ended(ended_);
  ended_.clear();
}

void SimModel::give_back(Instance& instance) {
  if (instance.permit) parts_.permits.give_back();
  instance.permit = false;
}

Duration SimModel::run_time(uint64_t items) {
  const Duration typical = spec_.device.predict(items);
  if (spec_.noise == 0) return typical;
  // Runs are seldom faster than typical and sometimes much slower.
  const double factor = std::max(0.8, 1 + spec_.noise * random_.normal());
  return Duration::from_seconds(typical.seconds() * factor);
}

}  // namespace baton::sim
