#include "service/batching/model_dispatcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace baton::service {
namespace {

// A call id is its slot below the number of its arrival: found without hashing, and never reused.
constexpr int kSlotBits = 24;
constexpr policy::Slot kNoSlot = (1U << kSlotBits) - 1;

policy::Slot slot_of(ports::CallId id) {
  return static_cast<policy::Slot>(id.value() & kNoSlot);
}

std::string level_limits_text(const BatchingConfig& batching) {
  std::string text = fmt::format("max_queue_size is {}", batching.default_policy.max_queue_size);
  for (const auto& [level, policy] : batching.level_policies) {
    text += fmt::format(", {} for level {}", policy.max_queue_size, level);
  }
  return text;
}

std::array<std::string, 7> refusal_texts(const DispatcherOptions& options) {
  const std::string& name = options.config.name;
  return {
      fmt::format("model '{}' is shutting down and takes no more requests; retry elsewhere", name),
      fmt::format(
          "the request holds more items than max_batch_size {} of model '{}'; send fewer in "
          "one request",
          options.config.max_batch_size, name),
      fmt::format("the queue of model '{}' is full: its limit is {} items; retry later", name,
                  options.limits.max_items),
      fmt::format("the queue of model '{}' is full: its limit is {} bytes; retry later", name,
                  options.limits.max_bytes),
      fmt::format("the queue of model '{}' is full for this priority: {}; retry later", name,
                  level_limits_text(options.config.batching)),
      fmt::format("the deadline passed before model '{}' could run the request; allow more time or "
                  "retry later",
                  name),
      fmt::format("model '{}' holds as many requests as it can tell apart; retry later", name),
  };
}

size_t text_index(DecisionReason limit) {
  switch (limit) {
    case DecisionReason::kTooLarge:
      return 1;
    case DecisionReason::kItemsLimit:
      return 2;
    case DecisionReason::kBytesLimit:
      return 3;
    case DecisionReason::kLevelLimit:
      return 4;
    case DecisionReason::kDeadlinePassed:
      return 5;
    case DecisionReason::kCallsLimit:
      return 6;
    default:
      return 0;
  }
}

bool exceeds(uint64_t held, uint64_t more, uint64_t limit) {
  return more > limit || held > limit - more;
}

bool is_deadline(EndReason reason) {
  return reason == EndReason::kDeadlineQueued || reason == EndReason::kDeadlineRunning;
}

// Why a call without a result ended.
DecisionReason reason_of(EndReason reason) {
  switch (reason) {
    case EndReason::kDeadlineQueued:
      return DecisionReason::kQueueDeadline;
    case EndReason::kDeadlineRunning:
      return DecisionReason::kRunDeadline;
    case EndReason::kClientGone:
      return DecisionReason::kClientGone;
    case EndReason::kShuttingDown:
      return DecisionReason::kShuttingDown;
    default:
      return DecisionReason::kNone;
  }
}

RunOutcome outcome_of(const Result<ports::BatchResult, ports::RunFailure>& outcome) {
  if (outcome) return RunOutcome::kDone;
  return outcome.error().terminated ? RunOutcome::kTerminated : RunOutcome::kFailed;
}

DecisionReason reason_of(RunOutcome outcome) {
  static constexpr std::array kReasons = {DecisionReason::kRunEnded, DecisionReason::kRunFailed,
                                          DecisionReason::kRunTerminated};
  return kReasons[static_cast<size_t>(outcome)];
}

// Where answers keep their order, batches are formed in it: another one would only hold them back.
policy::RankRule queue_order(const DispatcherOptions& options) {
  policy::RankRule rule = options.rank;
  if (options.config.batching.preserve_ordering) rule.patience = Duration();
  return rule;
}

}  // namespace

template <class Make>
void ModelDispatcher::enter(Make make) {
  ++entries_;
  if (!inputs_recorded_) return;
  DecisionInput input = make();
  input.entry = entries_;
  input.now = now_;
  decisions_.input(input);
}

ModelDispatcher::ModelDispatcher(DispatcherOptions options, ports::DecisionSink& decisions)
    : options_(std::move(options)),
      rules_(policy::batch_rules(options_.config)),
      decisions_(decisions),
      inputs_recorded_(decisions.takes_inputs()),
      texts_(refusal_texts(options_)),
      queues_(queue_order(options_)),
      curve_(options_.curve),
      instances_(std::max(options_.config.instance_count, 1U)),
      batch_totals_(rules_.max_items) {
  slots_.reserve(1024);
  free_slots_.reserve(1024);
  chosen_.reserve(rules_.max_items);
}

const std::string& ModelDispatcher::refusal_text(DecisionReason limit) const {
  return texts_[text_index(limit)];
}

Instant ModelDispatcher::advance(Instant now) {
  now_ = std::max(now_, now);
  return now_;
}

const QueuePolicy& ModelDispatcher::level_policy(uint32_t level) const {
  const BatchingConfig& batching = options_.config.batching;
  const auto found = batching.level_policies.find(level);
  return found == batching.level_policies.end() ? batching.default_policy : found->second;
}

policy::QueuedCall ModelDispatcher::describe(const InferRequest& request, Instant now) const {
  const BatchingConfig& batching = options_.config.batching;
  const uint32_t levels = std::max(batching.priority_levels, 1U);
  uint32_t level = request.context.priority;
  if (level == 0) level = batching.default_priority_level;
  policy::QueuedCall call;
  call.sequence = next_call_;
  call.level = std::clamp(level, 1U, levels);
  call.items = std::max<uint64_t>(request.items, 1);
  call.bytes = request.context.bytes;
  call.queued = now;
  call.deadline = request.context.deadline;
  call.queue_deadline = call.deadline;
  const QueuePolicy& policy = level_policy(call.level);
  if (policy.timeout <= Duration()) return call;
  if (policy.timeout_action == TimeoutAction::kDelay) {
    call.delay_at = now + policy.timeout;
  } else {
    call.queue_deadline = std::min(call.deadline, now + policy.timeout);
  }
  return call;
}

ModelDispatcher::Limit ModelDispatcher::limit_reached(const policy::QueuedCall& call) const {
  if (closed_) return {DecisionReason::kShuttingDown, closed_because_};
  if (options_.config.batches() && call.items > rules_.max_items) {
    return {DecisionReason::kTooLarge, EndReason::kTooLarge};
  }
  if (call.queue_deadline <= now_) {
    return {DecisionReason::kDeadlinePassed, EndReason::kDeadlineQueued};
  }
  if (exceeds(queues_.items(), call.items, options_.limits.max_items)) {
    return {DecisionReason::kItemsLimit};
  }
  if (exceeds(queues_.bytes(), call.bytes, options_.limits.max_bytes)) {
    return {DecisionReason::kBytesLimit};
  }
  const uint64_t most = level_policy(call.level).max_queue_size;
  // Calls that a free instance is about to take do not wait, and so do not count.
  const size_t free = instances() - count(InstanceState::kBusy);
  if (most > 0 && queues_.calls_of_level(call.level) >= most + free) {
    return {DecisionReason::kLevelLimit};
  }
  if (slots_.size() >= kNoSlot && free_slots_.empty()) return {DecisionReason::kCallsLimit};
  return {};
}

ports::Submitted ModelDispatcher::submit(ports::DispatchedCall& call, Instant now) {
  now = advance(now);
  const InferRequest& request = *call.call.request;
  enter([&] {
    return DecisionInput{.kind = InputKind::kSubmit,
                         .request = request.context.id,
                         .items = request.items,
                         .bytes = request.context.bytes,
                         .batch_key = request.batch_key,
                         .deadline = request.context.deadline,
                         .priority = request.context.priority};
  });
  const policy::QueuedCall queued = describe(request, now);
  const Limit limit = limit_reached(queued);
  if (limit.reason != DecisionReason::kNone) return refuse(request, limit);

  const bool was_empty = queues_.calls() == 0;
  arrivals_.on_arrival(queued.items, now);
  const policy::KeyIndex key = key_of(request);
  const policy::Slot slot = take_slot();
  ports::Submitted out;
  out.accepted = true;
  out.id = make_id(slot);
  out.queue_deadline = queued.queue_deadline;
  call.id = out.id;
  call.timings.queued = now;
  slots_[slot] = {.call = std::move(call), .state = SlotState::kQueued};
  queues_.push(slot, queued, request.batch_key, key);
  if (ordered()) order_.enter(queued.sequence, slot);

  const Wake wake = wake_one();
  out.wake = wake.wake;
  out.instance = wake.instance;
  const Duration predicted = curve_.curve().predict(queued.items);
  out.inline_run = wake.wake && wake.runs && was_empty && !curve_.curve().empty() &&
                   predicted < options_.hand_over;
  record({.kind = DecisionKind::kAdmit,
          .reason = DecisionReason::kWithinLimits,
          .instance = out.instance,
          .request = request.context.id,
          .items = queued.items,
          .detail = uint64_t{out.wake} + uint64_t{out.inline_run}});
  return out;
}

ports::Submitted ModelDispatcher::refuse(const InferRequest& request, Limit limit) {
  ports::Submitted out;
  out.id = make_id(kNoSlot);
  out.reason = limit.end;
  out.limit = limit.reason;
  if (limit.end == EndReason::kQueueFull) out.retry_after = drain_time();
  record({.kind = DecisionKind::kRefuse,
          .reason = limit.reason,
          .request = request.context.id,
          .items = request.items});
  return out;
}

policy::Slot ModelDispatcher::take_slot() {
  if (!free_slots_.empty()) {
    const policy::Slot slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }
  slots_.emplace_back();
  free_slots_.reserve(slots_.capacity());
  return static_cast<policy::Slot>(slots_.size() - 1);
}

ports::CallId ModelDispatcher::make_id(policy::Slot slot) {
  return ports::CallId(next_call_++ << kSlotBits | slot);
}

policy::KeyIndex ModelDispatcher::key_of(const InferRequest& request) const {
  return queues_.find_key(request.batch_key, [&](policy::Slot slot) {
    const CallSlot& queued = slots_[slot];
    if (queued.alone) return false;
    return !rules_.merge || same_layout(*queued.call.call.request, request, true);
  });
}

policy::BatchOutlook ModelDispatcher::outlook() const {
  return {.curve = &curve_.curve(),
          .paying_items = curve_.paying_items(),
          .trial_items = trial_.size(curve_.paying_items(), rules_.max_items, queues_.items()),
          .arrivals_per_second = closed_ ? 0 : arrivals_.per_second(now_),
          .instances = static_cast<uint32_t>(instances())};
}

size_t ModelDispatcher::count(InstanceState state) const {
  return static_cast<size_t>(std::ranges::count(instances_, state, &Instance::state));
}

// Finds an idle instance that is to ask for work, if there is work that those on their way do not
// take.
ModelDispatcher::Wake ModelDispatcher::wake_one() {
  if (queues_.calls() == 0) return {};
  const auto idle = std::ranges::find(instances_, InstanceState::kIdle, &Instance::state);
  if (idle == instances_.end()) return {};
  const size_t asking = count(InstanceState::kAsking);
  const uint64_t per_batch = rules_.merge ? rules_.max_items : 1;
  const uint64_t waiting = rules_.merge ? queues_.items() : queues_.calls();
  if (queues_.keys().size() <= asking && waiting <= asking * per_batch) return {};

  const policy::BatchChoice choice = policy::choose_batch(queues_, rules_, outlook(), now_);
  if (!choice.run) {
    if (asking > 0) return {};
    const bool armed = std::ranges::any_of(instances_, [&](const Instance& instance) {
      return instance.state == InstanceState::kIdle && instance.ask_again <= choice.until;
    });
    if (armed) return {};
  }
  idle->state = InstanceState::kAsking;
  return {.wake = true,
          .instance = static_cast<ports::InstanceIndex>(idle - instances_.begin()),
          .runs = choice.run};
}

void ModelDispatcher::will_ask(ports::InstanceIndex instance) {
  enter([&] { return DecisionInput{.kind = InputKind::kWillAsk, .instance = instance}; });
  BATON_CHECK(is_free(instance));
  instances_[instance].state = InstanceState::kAsking;
}

bool ModelDispatcher::is_free(ports::InstanceIndex instance) const {
  const InstanceState state = instances_[instance].state;
  return state == InstanceState::kAsking || state == InstanceState::kIdle;
}

ports::InstanceIndex ModelDispatcher::add_instance(Instant now) {
  advance(now);
  auto place = std::ranges::find(instances_, InstanceState::kGone, &Instance::state);
  if (place == instances_.end()) place = instances_.emplace(place);
  *place = {};
  const auto index = static_cast<ports::InstanceIndex>(place - instances_.begin());
  enter([&] { return DecisionInput{.kind = InputKind::kAddInstance, .instance = index}; });
  return index;
}

ports::NextBatch ModelDispatcher::remove_instance(ports::InstanceIndex instance, Instant now) {
  advance(now);
  enter([&] { return DecisionInput{.kind = InputKind::kRemoveInstance, .instance = instance}; });
  BATON_CHECK(is_free(instance) && instances() > 1);
  instances_[instance] = {};
  instances_[instance].state = InstanceState::kGone;
  // What it was on its way to take is another's.
  const Wake wake = wake_one();
  ports::NextBatch out;
  out.wake = wake.wake;
  out.instance = wake.instance;
  return out;
}

ports::NextBatch ModelDispatcher::next(ports::InstanceIndex instance, Instant now,
                                       ports::Batch& batch, std::vector<ports::EndedCall>& ended) {
  now = advance(now);
  enter([&] { return DecisionInput{.kind = InputKind::kNext, .instance = instance}; });
  BATON_CHECK(is_free(instance) && !batch.formed());
  expire(ended);
  release(ended);
  const policy::BatchChoice choice = choose();
  Instance& asker = instances_[instance];
  ports::NextBatch out;
  if (choice.run) {
    fill(instance, choice, batch);
    const Wake wake = wake_one();
    out.wake = wake.wake;
    out.instance = wake.instance;
    return out;
  }
  asker.state = InstanceState::kIdle;
  asker.ask_again = choice.until;
  out.ask_again = choice.until;
  if (choice.key != policy::kNoKey) {
    record({.kind = DecisionKind::kWait,
            .reason = choice.reason,
            .instance = instance,
            .items = choice.items,
            .detail = static_cast<uint64_t>((choice.until - now).ns())});
  }
  return out;
}

policy::BatchChoice ModelDispatcher::choose() {
  if (queues_.calls() == 0) return {};
  const policy::BatchOutlook known = outlook();
  policy::demote_hopeless(queues_, known, now_);
  return policy::choose_batch(queues_, rules_, known, now_);
}

ports::EngineStats ModelDispatcher::stats() const {
  ports::EngineStats stats = stats_;
  stats.queued_calls = queues_.calls();
  stats.running_calls = running_;
  return stats;
}

void ModelDispatcher::fill(ports::InstanceIndex instance, const policy::BatchChoice& choice,
                           ports::Batch& batch) {
  policy::commit_batch(queues_, choice, chosen_);
  batch.number = next_batch_++;
  batch.items = choice.items;
  for (policy::Slot slot : chosen_) {
    CallSlot& member = slots_[slot];
    member.state = SlotState::kRunning;
    member.instance = instance;
    member.call.timings.started = now_;
    member.call.timings.batch_items = static_cast<uint32_t>(choice.items);
    batch.members.push_back(member.call);
  }
  Instance& runner = instances_[instance];
  runner.state = InstanceState::kBusy;
  runner.started = now_;
  runner.live_members = static_cast<uint32_t>(chosen_.size());
  running_ += chosen_.size();
  stats_.executions += 1;
  stats_.executed_items += choice.items;
  const auto size_class = static_cast<size_t>(std::bit_width(choice.items - 1));
  stats_.batch_sizes[std::min(size_class, stats_.batch_sizes.size() - 1)] += 1;
  record({.kind = DecisionKind::kFormBatch,
          .reason = choice.reason,
          .instance = instance,
          .request = batch.members.front().call.request->context.id,
          .items = choice.items,
          .detail = chosen_.size()});
}

void ModelDispatcher::expire(std::vector<ports::EndedCall>& ended) {
  while (const auto slot = queues_.first_due(now_)) {
    if (queues_.call(*slot).queue_deadline <= now_) {
      end_queued(*slot, EndReason::kDeadlineQueued, ended);
      continue;
    }
    queues_.delay(*slot, now_);
    const InferRequest& request = *slots_[*slot].call.call.request;
    record({.kind = DecisionKind::kRequeue,
            .reason = DecisionReason::kQueueTimeout,
            .request = request.context.id,
            .items = request.items});
  }
}

void ModelDispatcher::end_queued(policy::Slot slot, EndReason reason,
                                 std::vector<ports::EndedCall>& ended) {
  CallSlot& queued = slots_[slot];
  const uint64_t items = queues_.call(slot).items;
  const RequestId request = queued.call.call.request->context.id;
  queues_.remove(slot);
  if (ordered()) order_.leave(queued.call.id.value() >> kSlotBits);
  ports::EndedCall& end = ended.emplace_back(std::move(queued.call));
  end.call.timings.ended = now_;
  end.end.reason = reason;
  end.end.refusal.reason = reason;
  end.end.timings = end.call.timings;
  queued = {};
  free_slots_.push_back(slot);
  record({.kind = is_deadline(reason) ? DecisionKind::kExpire : DecisionKind::kCancel,
          .reason = reason_of(reason),
          .request = request,
          .items = items});
}

void ModelDispatcher::finish(ports::InstanceIndex instance, ports::Batch& batch,
                             Result<ports::BatchResult, ports::RunFailure>& outcome, Instant now,
                             std::vector<ports::EndedCall>& ended) {
  now = advance(now);
  const RunOutcome ran = outcome_of(outcome);
  enter([&] {
    return DecisionInput{.kind = InputKind::kFinish, .outcome = ran, .instance = instance};
  });
  Instance& runner = instances_[instance];
  BATON_CHECK(runner.state == InstanceState::kBusy && batch.formed());
  BATON_CHECK(!outcome || outcome->results.size() == batch.members.size());
  const bool retry = retries_alone(batch, outcome);
  for (size_t i = 0; i < batch.members.size(); ++i) {
    const policy::Slot slot = slot_of(batch.members[i].id);
    const bool live = slots_[slot].state == SlotState::kRunning;
    if (live && retry) {
      --running_;
      requeue_alone(slot);
      continue;
    }
    if (!live) {
      slots_[slot] = {};
      free_slots_.push_back(slot);
      continue;
    }
    ports::EndedCall& end = place_answer(slot, ended);
    end.call = std::move(batch.members[i]);
    end.call.timings.ended = now;
    if (outcome) {
      end.end.result = std::move(outcome->results[i]);
      end.call.timings.computed_from = outcome->times.computed_from;
      end.call.timings.computed_to = outcome->times.computed_to;
    } else {
      const bool by_close = outcome.error().terminated && closed_;
      end.end.reason = by_close ? closed_because_ : EndReason::kEngineFailed;
      end.end.refusal.reason = end.end.reason;
      // The words may hold values of any member: they are for a request that ran alone.
      if (batch.members.size() == 1) end.end.refusal.message = outcome.error().message;
    }
    end.end.timings = end.call.timings;
  }

  runner.state = InstanceState::kAsking;
  runner.live_members = 0;
  if (outcome) {
    learn(batch.items, now - runner.started);
    batch_totals_.add(batch.items, runner.started, outcome->times, now);
  }
  record({.kind = DecisionKind::kFinish,
          .reason = reason_of(ran),
          .instance = instance,
          .items = batch.items,
          .detail = batch.number});
  release(ended);
}

ports::EndedCall& ModelDispatcher::place_answer(policy::Slot slot,
                                                std::vector<ports::EndedCall>& ended) {
  if (!ordered()) {
    --running_;
    slots_[slot] = {};
    free_slots_.push_back(slot);
    return ended.emplace_back();
  }
  slots_[slot].state = SlotState::kHeld;
  if (held_.size() < slots_.size()) held_.resize(slots_.size());
  order_.answered(slots_[slot].call.id.value() >> kSlotBits);
  return held_[slot];
}

// Without the answer that it has.
void ModelDispatcher::end_held(policy::Slot slot, EndReason reason,
                               std::vector<ports::EndedCall>& ended) {
  --running_;
  order_.leave(slots_[slot].call.id.value() >> kSlotBits);
  ports::EndedCall& end = ended.emplace_back(std::move(held_[slot]));
  end.end.reason = reason;
  end.end.result = {};
  end.end.refusal.reason = reason;
  end.call.timings.ended = now_;
  end.end.timings = end.call.timings;
  slots_[slot] = {};
  held_[slot] = {};
  free_slots_.push_back(slot);
  const InferRequest& request = *end.call.call.request;
  record({.kind = is_deadline(reason) ? DecisionKind::kExpire : DecisionKind::kCancel,
          .reason = reason_of(reason),
          .request = request.context.id,
          .items = request.items});
}

// What no earlier call holds back any more.
void ModelDispatcher::release(std::vector<ports::EndedCall>& ended) {
  if (!ordered()) return;
  while (const auto slot = order_.take_next()) {
    --running_;
    ended.push_back(std::move(held_[*slot]));
    held_[*slot] = {};
    slots_[*slot] = {};
    free_slots_.push_back(*slot);
  }
}

// A batch may fail by one member's values: the others are not to suffer for it, however often that
// happens.
bool ModelDispatcher::retries_alone(
    const ports::Batch& batch, const Result<ports::BatchResult, ports::RunFailure>& outcome) const {
  return !outcome && !outcome.error().terminated && batch.members.size() > 1 && !closed_;
}

// It keeps its rank. Its queue deadline was met; what bounds it now is its end-to-end deadline.
void ModelDispatcher::requeue_alone(policy::Slot slot) {
  CallSlot& call = slots_[slot];
  const InferRequest& request = *call.call.call.request;
  policy::QueuedCall queued = describe(request, call.call.timings.queued);
  queued.sequence = call.call.id.value() >> kSlotBits;
  queued.queue_deadline = queued.deadline;
  queued.delay_at = Instant::never();
  call.state = SlotState::kQueued;
  call.alone = true;
  queues_.push(slot, queued, queued.sequence, policy::kNoKey);
  record({.kind = DecisionKind::kRequeue,
          .reason = DecisionReason::kRetryAlone,
          .request = request.context.id,
          .items = queued.items});
}

ports::Dispatcher::Aborted ModelDispatcher::abort(ports::CallId id, EndReason reason,
                                                  ports::AbortScope scope, Instant now,
                                                  std::vector<ports::EndedCall>& ended) {
  advance(now);
  enter([&] {
    return DecisionInput{.kind = InputKind::kAbort,
                         .end = reason,
                         .also_running = scope == ports::AbortScope::kAlsoRunning,
                         .call = id.value()};
  });
  const policy::Slot slot = slot_of(id);
  if (slot >= slots_.size() || slots_[slot].call.id != id) return {};
  CallSlot& found = slots_[slot];
  if (found.state == SlotState::kQueued) {
    end_queued(slot, reason, ended);
    release(ended);
    return {.reached = true};
  }
  if (found.state == SlotState::kHeld && scope == ports::AbortScope::kAlsoRunning) {
    end_held(slot, reason, ended);
    release(ended);
    return {.reached = true};
  }
  if (found.state != SlotState::kRunning || scope == ports::AbortScope::kOnlyQueued) return {};

  found.state = SlotState::kAborted;
  --running_;
  if (ordered()) order_.leave(found.call.id.value() >> kSlotBits);
  Instance& runner = instances_[found.instance];
  --runner.live_members;
  ports::EndedCall& end = ended.emplace_back(found.call);  // the batch keeps its own
  end.call.timings.ended = now_;
  end.end.reason = reason;
  end.end.refusal.reason = reason;
  end.end.timings = end.call.timings;
  record({.kind = is_deadline(reason) ? DecisionKind::kExpire : DecisionKind::kCancel,
          .reason = reason_of(reason),
          .instance = found.instance,
          .request = end.call.call.request->context.id,
          .items = end.call.call.request->items});
  release(ended);
  return {.reached = true, .terminate = runner.live_members == 0, .instance = found.instance};
}

void ModelDispatcher::stop_accepting(EndReason reason) {
  enter([&] { return DecisionInput{.kind = InputKind::kStopAccepting, .end = reason}; });
  refuse_from_now(reason);
}

void ModelDispatcher::refuse_from_now(EndReason reason) {
  closed_ = true;
  closed_because_ = reason;
}

void ModelDispatcher::close(EndReason reason, Instant now, std::vector<ports::EndedCall>& ended) {
  advance(now);
  enter([&] { return DecisionInput{.kind = InputKind::kClose, .end = reason}; });
  refuse_from_now(reason);
  while (const auto slot = queues_.first_by_rank()) end_queued(*slot, reason, ended);
  release(ended);
}

void ModelDispatcher::learn(uint64_t items, Duration duration) {
  const uint64_t paying = curve_.paying_items();
  curve_.observe(items, duration);
  if (const auto measured = trial_.on_run(items, duration, paying)) {
    curve_.remeasure(measured->items, measured->duration);
    trial_.settle(curve_.paying_items() >= measured->items);
  }
  const double seen = duration.seconds() / static_cast<double>(items);
  constexpr double kWeight = 1.0 / 16;
  seconds_per_item_ =
      seconds_per_item_ == 0 ? seen : seconds_per_item_ + kWeight * (seen - seconds_per_item_);
}

// How long the queue takes to empty at the rate that the instances can serve. One second when
// nothing is known yet.
Duration ModelDispatcher::drain_time() const {
  double per_item = seconds_per_item_;
  if (const uint64_t paying = curve_.paying_items(); paying > 0) {
    per_item = curve_.curve().predict(paying).seconds() / static_cast<double>(paying);
  }
  if (per_item <= 0) return Duration::s(1);
  const double seconds =
      per_item * static_cast<double>(queues_.items()) / static_cast<double>(instances());
  return Duration::from_seconds(std::min(seconds, 3600.0));
}

void ModelDispatcher::record(Decision decision) {
  decision.sequence = next_decision_++;
  decision.entry = entries_;
  decision.now = now_;
  decision.queued = queues_.items();
  decisions_.record(decision);
}

}  // namespace baton::service
