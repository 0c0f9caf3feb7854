#include "sim/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "base/json_writer.h"
#include "policy/admission/admission.h"
#include "service/batching/dispatcher_setup.h"

namespace baton::sim {
namespace {

using protocol::decision_log::LineWriter;
using protocol::decision_log::LogLine;

// What a service decides again, as lines.
class Lines final : public ports::DecisionSink {
 public:
  explicit Lines(LineWriter writer) : writer_(std::move(writer)) {}
  void record(const Decision& decision) override { list.push_back(writer_.decision(decision)); }
  std::deque<std::string> list;

 private:
  LineWriter writer_;
};

// A service that decides again. Error: an input that the log's own order rules out.
class Decider {
 public:
  virtual ~Decider() = default;
  virtual Result<void, std::string> enter(const DecisionInput& input) = 0;
};

class DispatcherAgain final : public Decider {
 public:
  DispatcherAgain(const DispatcherSetup& setup, Lines& lines)
      : batches_(std::max(setup.config.instance_count, 1U)),
        gone_(batches_.size(), false),
        dispatcher_(service::options_of(setup), lines) {}

  Result<void, std::string> enter(const DecisionInput& input) override {
    ended_.clear();
    switch (input.kind) {
      case InputKind::kSubmit:
        submit(input);
        return {};
      case InputKind::kWillAsk:
      case InputKind::kNext:
        return ask(input);
      case InputKind::kFinish:
        return finish(input);
      case InputKind::kAbort:
        dispatcher_.abort(
            ports::CallId(input.call), input.end,
            input.also_running ? ports::AbortScope::kAlsoRunning : ports::AbortScope::kOnlyQueued,
            input.now, ended_);
        return {};
      case InputKind::kAddInstance:
        return add_instance(input);
      case InputKind::kRemoveInstance:
        return remove_instance(input);
      case InputKind::kStopAccepting:
        dispatcher_.stop_accepting(input.end);
        return {};
      case InputKind::kClose:
        dispatcher_.close(input.end, input.now, ended_);
        return {};
      case InputKind::kAdmission:
        break;
    }
    return fail(std::string("a model has no input of this kind"));
  }

 private:
  // Payloads and layouts stay behind: the key says which calls may share a batch.
  void submit(const DecisionInput& input) {
    InferRequest request;
    request.context.id = input.request;
    request.context.bytes = input.bytes;
    request.context.deadline = input.deadline;
    request.context.priority = input.priority;
    request.items = input.items;
    request.batch_key = input.batch_key;
    ports::DispatchedCall call;
    call.call.request = std::make_shared<const InferRequest>(std::move(request));
    dispatcher_.submit(call, input.now);
  }

  [[nodiscard]] bool is_there(ports::InstanceIndex instance) const {
    return instance < batches_.size() && !gone_[instance];
  }

  Result<void, std::string> ask(const DecisionInput& input) {
    if (!is_there(input.instance)) return fail(std::string("no such instance"));
    ports::Batch& batch = batches_[input.instance];
    if (batch.formed()) return fail(std::string("the instance runs a batch"));
    if (input.kind == InputKind::kWillAsk) {
      dispatcher_.will_ask(input.instance);
    } else {
      dispatcher_.next(input.instance, input.now, batch, ended_);
    }
    return {};
  }

  Result<void, std::string> add_instance(const DecisionInput& input) {
    const ports::InstanceIndex index = dispatcher_.add_instance(input.now);
    if (index != input.instance) return fail(std::string("another number is free"));
    if (index == batches_.size()) {
      batches_.emplace_back();
      gone_.push_back(false);
    }
    gone_[index] = false;
    return {};
  }

  Result<void, std::string> remove_instance(const DecisionInput& input) {
    if (!is_there(input.instance)) return fail(std::string("no such instance"));
    if (batches_[input.instance].formed()) return fail(std::string("the instance runs a batch"));
    if (std::ranges::count(gone_, false) == 1) {
      return fail(std::string("the last instance is removed"));
    }
    gone_[input.instance] = true;
    dispatcher_.remove_instance(input.instance, input.now);
    return {};
  }

  Result<void, std::string> finish(const DecisionInput& input) {
    if (input.instance >= batches_.size()) return fail(std::string("no such instance"));
    ports::Batch& batch = batches_[input.instance];
    if (!batch.formed()) return fail(std::string("the instance runs no batch"));
    Result<ports::BatchResult, ports::RunFailure> outcome;
    if (input.outcome == RunOutcome::kDone) {
      outcome->results.resize(batch.members.size());
    } else {
      outcome = fail(ports::RunFailure{.terminated = input.outcome == RunOutcome::kTerminated});
    }
    dispatcher_.finish(input.instance, batch, outcome, input.now, ended_);
    batch.members.clear();
    return {};
  }

  std::vector<ports::Batch> batches_;
  std::vector<bool> gone_;  // instances that were removed
  std::vector<ports::EndedCall> ended_;
  service::ModelDispatcher dispatcher_;
};

class AdmissionAgain final : public Decider {
 public:
  AdmissionAgain(const AdmissionSetup& setup, Lines& lines)
      : limits_{.max_in_flight = setup.max_in_flight, .max_bytes = setup.max_bytes},
        lines_(lines) {}

  Result<void, std::string> enter(const DecisionInput& input) override {
    if (input.kind != InputKind::kAdmission) {
      return fail(std::string("a worker has no input of this kind"));
    }
    const auto refused = policy::refuse_admission({input.in_flight, input.in_flight_bytes}, limits_,
                                                  {input.bytes, input.deadline}, input.now);
    if (!refused) return {};
    lines_.record(policy::refusal_decision(input, refused->limit));
    return {};
  }

 private:
  policy::AdmissionLimits limits_;
  Lines& lines_;
};

LineWriter writer_of(const LogLine& line) {
  return line.of_worker ? LineWriter::of_worker(line.worker)
                        : LineWriter::of_model(line.model, line.version, line.load);
}

}  // namespace

// One service of the log.
class Replay::Part {
 public:
  Part(std::string name, const LogLine& first) : lines_(writer_of(first)) {
    result.name = std::move(name);
  }

  // The difference, or nothing.
  std::optional<ReplayDifference> set_up(const LogLine& line, uint64_t number);
  Result<std::optional<ReplayDifference>, std::string> input(const LogLine& line, uint64_t number);
  std::optional<ReplayDifference> decision(const LogLine& line, std::string_view text,
                                           uint64_t number);
  // Records may be missing here; the next line shows whether they are.
  void on_gap(std::string why) { gap_ = std::move(why); }
  void on_over() {
    if (result.gap.empty() && !lines_.list.empty()) {
      stop("the log ends behind an input whose decisions it does not hold");
    }
  }

  ReplayResult::Part result;

 private:
  std::optional<ReplayDifference> undecided(uint64_t number);
  void stop(std::string why) {
    result.gap = gap_.empty() ? std::move(why) : gap_;
    decider_.reset();
    lines_.list.clear();
  }
  [[nodiscard]] bool stopped() const { return !result.gap.empty(); }

  Lines lines_;
  std::unique_ptr<Decider> decider_;  // null before its setup, and when records are missing
  uint64_t next_entry_ = 1;
  uint64_t next_sequence_ = 1;
  std::string gap_;
};

// Also in the middle of a file: a later process went on with it.
std::optional<ReplayDifference> Replay::Part::set_up(const LogLine& line, uint64_t number) {
  if (auto missing = undecided(number)) return missing;
  next_entry_ = 1;
  next_sequence_ = 1;
  if (stopped()) return std::nullopt;
  if (const auto* setup = std::get_if<DispatcherSetup>(&line.setup)) {
    decider_ = std::make_unique<DispatcherAgain>(*setup, lines_);
  } else {
    decider_ = std::make_unique<AdmissionAgain>(std::get<AdmissionSetup>(line.setup), lines_);
  }
  return std::nullopt;
}

// What was decided again for the inputs so far, and is not in the log.
std::optional<ReplayDifference> Replay::Part::undecided(uint64_t number) {
  if (lines_.list.empty()) return std::nullopt;
  if (gap_.empty()) return ReplayDifference{number, "", lines_.list.front()};
  stop("");
  return std::nullopt;
}

Result<std::optional<ReplayDifference>, std::string> Replay::Part::input(const LogLine& line,
                                                                         uint64_t number) {
  if (stopped()) return std::nullopt;
  if (!decider_) {
    stop("its setup is not in the log");
    return std::nullopt;
  }
  if (line.entry != next_entry_) {
    stop(fmt::format("line {}: the inputs from {} to {} are missing", number, next_entry_,
                     line.entry - 1));
    return std::nullopt;
  }
  if (auto missing = undecided(number)) return missing;
  if (stopped()) return std::nullopt;
  gap_.clear();  // it took nothing of this service
  ++next_entry_;
  ++result.inputs;
  BATON_TRY(decider_->enter(line.input));
  return std::nullopt;
}

std::optional<ReplayDifference> Replay::Part::decision(const LogLine& line, std::string_view text,
                                                       uint64_t number) {
  if (stopped()) return std::nullopt;
  if (!decider_) {
    stop("its setup is not in the log");
    return std::nullopt;
  }
  const bool missing = line.sequence > next_sequence_ || line.entry >= next_entry_;
  if (missing) {
    stop(fmt::format("line {}: records before decision {} are missing", number, line.sequence));
    return std::nullopt;
  }
  if (lines_.list.empty()) return ReplayDifference{number, std::string(text), ""};
  if (lines_.list.front() != text) {
    return ReplayDifference{number, std::string(text), lines_.list.front()};
  }
  gap_.clear();
  lines_.list.pop_front();
  ++next_sequence_;
  ++result.decisions;
  return std::nullopt;
}

Replay::Replay() = default;
Replay::~Replay() = default;

Replay::Part& Replay::part_of(const LogLine& line) {
  std::string name = line.of_worker ? fmt::format("worker {}", line.worker)
                                    : fmt::format("{}/{}", line.model, line.version);
  if (line.load > 1) name += fmt::format(" load {}", line.load);
  auto& part = parts_[name];
  if (!part) part = std::make_unique<Part>(name, line);
  return *part;
}

Result<bool, std::string> Replay::feed(std::string_view text) {
  ++line_;
  const auto place = [&](const std::string& what) {
    return fmt::format("line {}: {}", line_, what);
  };
  auto line = parser_.parse(text);
  if (!line.has_value()) return fail(place(line.error()));
  std::optional<ReplayDifference> found;
  switch (line->kind) {
    case LogLine::Kind::kDropped:
      for (auto& [name, part] : parts_) {
        part->on_gap(place(fmt::format("{} lines of the log were lost here", line->count)));
      }
      return true;
    case LogLine::Kind::kMissed:
      part_of(*line).on_gap(place(fmt::format("{} records were not written here", line->count)));
      return true;
    case LogLine::Kind::kSetup:
      found = part_of(*line).set_up(*line, line_);
      break;
    case LogLine::Kind::kInput: {
      auto entered = part_of(*line).input(*line, line_);
      if (!entered.has_value()) return fail(place(entered.error()));
      found = std::move(*entered);
      break;
    }
    case LogLine::Kind::kDecision:
      found = part_of(*line).decision(*line, text, line_);
      break;
  }
  if (!found) return true;
  difference_ = std::make_unique<ReplayDifference>(std::move(*found));
  return false;
}

ReplayResult Replay::finish() {
  ReplayResult result;
  for (auto& [name, part] : parts_) {
    if (!difference_) part->on_over();
    result.parts.push_back(part->result);
  }
  result.difference = std::move(difference_);
  return result;
}

bool ReplayResult::complete() const {
  return std::ranges::all_of(parts, [](const Part& part) { return part.gap.empty(); });
}

uint64_t ReplayResult::decisions() const {
  uint64_t sum = 0;
  for (const Part& part : parts) sum += part.decisions;
  return sum;
}

std::string render_text(const ReplayResult& result) {
  std::string out;
  for (const ReplayResult::Part& part : result.parts) {
    out += fmt::format("{}: {} decisions of {} inputs are equal\n", part.name, part.decisions,
                       part.inputs);
    if (!part.gap.empty())
      out += fmt::format("  INCOMPLETE: {}; not replayed from there\n", part.gap);
  }
  if (result.difference) {
    const auto or_nothing = [](const std::string& line) { return line.empty() ? "nothing" : line; };
    out += fmt::format("DIFFERS at line {}\n  recorded: {}\n  replayed: {}\n",
                       result.difference->line, or_nothing(result.difference->recorded),
                       or_nothing(result.difference->replayed));
  } else if (result.complete()) {
    out += fmt::format("equal: {} decisions\n", result.decisions());
  }
  if (!out.empty()) out.pop_back();
  return out;
}

std::string render_json(const ReplayResult& result) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("equal", result.difference == nullptr);
  json.field("complete", result.complete()).field("decisions", result.decisions());
  json.key("parts").begin_array();
  for (const ReplayResult::Part& part : result.parts) {
    json.begin_object().field("name", part.name).field("inputs", part.inputs);
    json.field("decisions", part.decisions);
    if (!part.gap.empty()) json.field("gap", part.gap);
    json.end_object();
  }
  json.end_array();
  if (result.difference) {
    json.key("difference").begin_object().field("line", result.difference->line);
    json.field("recorded", result.difference->recorded);
    json.field("replayed", result.difference->replayed).end_object();
  }
  json.end_object();
  return out;
}

}  // namespace baton::sim
