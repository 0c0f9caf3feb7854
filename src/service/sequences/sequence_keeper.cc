#include "service/sequences/sequence_keeper.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"

namespace baton::service {
namespace {

policy::SequenceLimits limits_of(const SequenceKeeperOptions& options) {
  return {.live = live_sequences(options.config),
          .beginnings = options.beginnings_max,
          .steps = options.steps_max,
          .idle = options.config.sequences->idle};
}

Shape with_batch(const ModelConfig& config, const Shape& dims) {
  Shape shape = dims;
  if (config.batches()) shape.insert(shape.begin(), 1);
  return shape;
}

template <class States>
uint64_t bytes_of(const States& states) {
  uint64_t bytes = 0;
  for (const auto& state : states) bytes += state.bytes->size();
  return bytes;
}

std::vector<std::byte> as_vector(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

bool fits(const Shape& shape, const SequenceState& state, const ModelConfig& config) {
  Shape wanted = with_batch(config, state.dims);
  return std::ranges::equal(shape, wanted,
                            [](int64_t found, int64_t dim) { return dim == -1 || dim == found; });
}

bool asks_for(const InferRequest& request, const std::string& output, const ModelConfig& config) {
  if (!request.outputs.empty()) {
    return std::ranges::find(request.outputs, output, &RequestedOutput::name) !=
           request.outputs.end();
  }
  return std::ranges::find(config.outputs, output, &TensorSpec::name) != config.outputs.end();
}

}  // namespace

SequenceKeeper::SequenceKeeper(SequenceKeeperOptions options)
    : options_(std::move(options)), first_(first_states()), table_(limits_of(options_)) {}

SequenceKeeper::States SequenceKeeper::first_states() const {
  States states;
  for (const SequenceState& state : options_.config.sequences->states) {
    BATON_CHECK(state.first_bytes != nullptr);
    states.push_back({with_batch(options_.config, state.first.dims),
                      std::make_shared<const std::vector<std::byte>>(
                          as_vector(std::as_bytes(std::span(*state.first_bytes))))});
  }
  return states;
}

std::optional<Refusal> SequenceKeeper::arrive(ports::StepNumber step,
                                              std::shared_ptr<const InferRequest> request,
                                              Instant now, ports::SequenceTurn& turn) {
  policy::SequenceChanges changes;
  const SequenceStep described = request->sequence;
  steps_.emplace(step, Step{std::move(request), 0});
  const policy::StepRefusal refusal = table_.arrive(step, described, now, changes);
  if (refusal != policy::StepRefusal::kNone) steps_.erase(step);
  apply(changes, {}, turn);
  if (refusal == policy::StepRefusal::kNone) return std::nullopt;
  return explain(refusal, described.id);
}

Refusal SequenceKeeper::explain(policy::StepRefusal refusal, const CorrelationId& id) const {
  const std::string& model = options_.config.name;
  const std::string sequence = "sequence " + correlation_text(id) + " of model \"" + model + "\"";
  switch (refusal) {
    case policy::StepRefusal::kUnknown:
      return {EndReason::kInvalid,
              sequence + " has not begun, or has ended: its first request sets sequence_start",
              {}};
    case policy::StepRefusal::kIdle:
      return {EndReason::kInvalid,
              sequence + " had no request for " +
                  std::to_string(options_.config.sequences->idle.us()) +
                  " us (max_sequence_idle_microseconds) and was ended; begin it again with "
                  "sequence_start",
              {}};
    case policy::StepRefusal::kTooManyBeginnings:
      return {EndReason::kQueueFull,
              "model \"" + model + "\" has " + std::to_string(table_.live()) +
                  " live sequences and " + std::to_string(table_.beginnings()) +
                  " that wait to begin, the most that may",
              Duration::s(1)};
    case policy::StepRefusal::kTooManySteps:
      return {EndReason::kQueueFull,
              "model \"" + model + "\" has " + std::to_string(table_.waiting_steps()) +
                  " requests of sequences that wait for their turn, the most that may",
              Duration::s(1)};
    case policy::StepRefusal::kClosed:
    case policy::StepRefusal::kNone:
      break;
  }
  return {EndReason::kShuttingDown, "the model is shutting down; retry elsewhere", {}};
}

// `why`: what the steps that are lost are told.
void SequenceKeeper::apply(const policy::SequenceChanges& changes, Refusal why,
                           ports::SequenceTurn& turn) {
  for (const ports::StepNumber step : changes.lost) {
    const auto found = steps_.find(step);
    BATON_CHECK(found != steps_.end());
    turn.freed.push_back(std::move(found->second.request));
    steps_.erase(found);
    turn.lost.push_back({step, why});
    ++lost_;
  }
  for (const policy::SequenceNumber sequence : changes.over) drop(sequence, turn);
  for (const auto& run : changes.run) {
    Step& step = steps_.at(run.step);
    step.sequence = run.sequence;
    // The old state stays until this step has succeeded.
    const States& states = run.begins ? first_ : states_.at(run.sequence);
    turn.run.push_back({run.step, complete(*step.request, states)});
  }
}

// A request with the tensors that its client does not send.
std::shared_ptr<const InferRequest> SequenceKeeper::complete(const InferRequest& request,
                                                             const States& states) const {
  const ModelConfig& config = options_.config;
  auto whole = std::make_shared<InferRequest>(request);
  for (const SequenceControl& control : config.sequences->controls) {
    add_control(control, request.sequence, *whole);
  }
  if (request.outputs.empty()) {
    for (const TensorSpec& output : config.outputs) whole->outputs.push_back({.name = output.name});
  }
  for (size_t i = 0; i < states.size(); ++i) {
    const SequenceState& state = config.sequences->states[i];
    whole->inputs.push_back({.name = state.input,
                             .type = state.type,
                             .shape = states[i].shape,
                             .data = *states[i].bytes});
    whole->storage.push_back(states[i].bytes);
    if (!asks_for(request, state.output, config)) whole->outputs.push_back({.name = state.output});
  }
  whole->batch_key = layout_hash(*whole, config.batches());
  return whole;
}

void SequenceKeeper::add_control(const SequenceControl& control, const SequenceStep& described,
                                 InferRequest& request) const {
  std::string element;
  switch (control.kind) {
    case SequenceControl::Kind::kStart:
      element = described.start ? control.on : control.off;
      break;
    case SequenceControl::Kind::kEnd:
      element = described.end ? control.on : control.off;
      break;
    case SequenceControl::Kind::kReady:
      element = control.on;  // a batch holds nothing but requests
      break;
    case SequenceControl::Kind::kCorrelationId: {
      auto encoded = correlation_element(described.id, control);
      BATON_CHECK(encoded.has_value());  // the gateway has checked it
      element = std::move(*encoded);
      break;
    }
  }
  auto kept = std::make_shared<const std::string>(std::move(element));
  request.inputs.push_back({.name = control.input,
                            .type = control.type,
                            .shape = with_batch(options_.config, control.dims),
                            .data = std::as_bytes(std::span(*kept))});
  request.storage.push_back(std::move(kept));
}

std::optional<Refusal> SequenceKeeper::ended(ports::StepNumber step, InferResult* result,
                                             Instant now, ports::SequenceTurn& turn) {
  const auto found = steps_.find(step);
  BATON_CHECK(found != steps_.end());
  const Step done = std::move(found->second);
  steps_.erase(found);
  const CorrelationId& id = done.request->sequence.id;
  std::optional<Refusal> refusal;
  if (result != nullptr) {
    auto states = read_states(*result);
    if (states.has_value()) {
      keep(done.sequence, std::move(*states), turn);
      hide_states(*done.request, *result);
    } else {
      refusal = std::move(states).error();
    }
  }
  policy::SequenceChanges changes;
  table_.ended(step, result != nullptr && !refusal, now, changes);
  apply(changes,
        {EndReason::kEngineFailed,
         "an earlier request of sequence " + correlation_text(id) +
             " did not succeed; send again from that one on",
         {}},
        turn);
  return refusal;
}

Result<SequenceKeeper::States, Refusal> SequenceKeeper::read_states(
    const InferResult& result) const {
  const ModelConfig& config = options_.config;
  States states;
  for (const SequenceState& state : config.sequences->states) {
    const auto tensor = std::ranges::find(result.outputs, state.output, &Tensor::name);
    if (tensor == result.outputs.end() || tensor->type != state.type ||
        !fits(tensor->shape, state, config)) {
      return fail(Refusal{EndReason::kEngineFailed,
                          "model \"" + config.name + "\" did not write the state \"" +
                              state.output + "\" as its configuration says",
                          {}});
    }
    states.push_back(
        {tensor->shape, std::make_shared<const std::vector<std::byte>>(as_vector(tensor->data))});
  }
  const uint64_t bytes = bytes_of(states);
  if (state_bytes_ + bytes > options_.state_bytes_max) {
    return fail(Refusal{EndReason::kOverloaded,
                        "the states of the sequences of model \"" + config.name + "\" are at " +
                            std::to_string(state_bytes_) + " bytes of the limit of " +
                            std::to_string(options_.state_bytes_max) + "; this one has " +
                            std::to_string(bytes),
                        Duration::s(1)});
  }
  return states;
}

void SequenceKeeper::keep(policy::SequenceNumber sequence, States states,
                          ports::SequenceTurn& turn) {
  drop(sequence, turn);
  state_bytes_ += bytes_of(states);
  states_.emplace(sequence, std::move(states));
}

void SequenceKeeper::drop(policy::SequenceNumber sequence, ports::SequenceTurn& turn) {
  const auto found = states_.find(sequence);
  if (found == states_.end()) return;
  state_bytes_ -= bytes_of(found->second);
  for (Kept& state : found->second) turn.freed.push_back(std::move(state.bytes));
  states_.erase(found);
}

// What its client did not ask for.
void SequenceKeeper::hide_states(const InferRequest& request, InferResult& result) const {
  std::erase_if(result.outputs, [&](const Tensor& output) {
    const auto& states = options_.config.sequences->states;
    return std::ranges::find(states, output.name, &SequenceState::output) != states.end() &&
           !asks_for(request, output.name, options_.config);
  });
}

bool SequenceKeeper::leave(ports::StepNumber step, Instant now, ports::SequenceTurn& turn) {
  policy::SequenceChanges changes;
  if (!table_.leave(step, now, changes)) return false;
  const auto found = steps_.find(step);
  const CorrelationId id = found->second.request->sequence.id;
  turn.freed.push_back(std::move(found->second.request));
  steps_.erase(found);
  apply(changes,
        {EndReason::kEngineFailed,
         "an earlier request of sequence " + correlation_text(id) +
             " was given up; send again from that one on",
         {}},
        turn);
  return true;
}

Instant SequenceKeeper::expire(Instant now, ports::SequenceTurn& turn) {
  policy::SequenceChanges changes;
  table_.expire(now, changes);
  apply(changes, {}, turn);
  return table_.next_expiry();
}

void SequenceKeeper::stop_accepting(ports::SequenceTurn& turn) {
  policy::SequenceChanges changes;
  table_.stop_accepting(changes);
  apply(changes, {}, turn);
}

void SequenceKeeper::close(ports::SequenceTurn& turn) {
  policy::SequenceChanges changes;
  table_.close(changes);
  apply(changes, explain(policy::StepRefusal::kClosed, {}), turn);
}

void SequenceKeeper::let_all_begin(Instant now, ports::SequenceTurn& turn) {
  policy::SequenceChanges changes;
  table_.set_live_limit(UINT32_MAX, now, changes);
  apply(changes, {}, turn);
}

void SequenceKeeper::set_instances(uint32_t count, Instant now, ports::SequenceTurn& turn) {
  ModelConfig config = options_.config;
  config.instance_count = count;
  policy::SequenceChanges changes;
  table_.set_live_limit(live_sequences(config), now, changes);
  apply(changes, {}, turn);
}

ports::SequenceStats SequenceKeeper::stats() const {
  return {.live = table_.live(),
          .begun = table_.begun(),
          .idle_ended = table_.idle_ended(),
          .lost_steps = lost_,
          .state_bytes = state_bytes_};
}

}  // namespace baton::service
