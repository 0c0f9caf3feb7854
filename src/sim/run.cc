#include "sim/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/hash.h"
#include "protocol/decision_log/decision_log.h"
#include "service/batching/dispatcher_setup.h"
#include "service/batching/permits.h"
#include "sim/sim_model.h"

namespace baton::sim {
namespace {

// A planted fault strikes at this occasion: late enough for the run to be under way.
constexpr uint64_t kFaultAt = 1000;
// Triton answers expired requests at the next sweep (server#7512).
constexpr Duration kLateBy = Duration::ms(500);
// After the last arrival everything in flight must end within this.
constexpr Duration kDrain = Duration::s(120);

struct Trace final : ports::DecisionSink {
  void record(const Decision& decision) override {
    hash.add(static_cast<uint64_t>(decision.now.ns()));
    hash.add(static_cast<uint64_t>(decision.kind) << 8 | static_cast<uint64_t>(decision.reason));
    hash.add(decision.sequence ^ decision.request.value() << 20);
    hash.add(decision.items << 40 ^ decision.queued << 16 ^ decision.instance);
    hash.add(decision.detail);
  }
  Fnv1a hash;
};

// Hashes one model's decisions, and writes them with their inputs where they are asked for.
class Recorder final : public ports::DecisionSink {
 public:
  Recorder(Trace& trace, ports::LogSink* log, const ModelSpec& spec)
      : trace_(trace),
        log_(log),
        writer_(protocol::decision_log::LineWriter::of_model(spec.config.name, 1)) {
    if (log_ != nullptr) {
      log_->write(writer_.setup(service::setup_of(SimModel::dispatcher_options(spec))));
    }
  }
  void record(const Decision& decision) override {
    trace_.record(decision);
    if (log_ != nullptr) log_->write(writer_.decision(decision));
  }
  [[nodiscard]] bool takes_inputs() const override { return log_ != nullptr; }
  void input(const DecisionInput& input) override { log_->write(writer_.input(input)); }

 private:
  Trace& trace_;
  ports::LogSink* log_;
  protocol::decision_log::LineWriter writer_;
};

class Run final : public SimListener {
 public:
  Run(const Scenario& scenario, const ScenarioOptions& options);
  ScenarioResult finish();

  void on_batch(const ports::Batch& batch, const ModelConfig& config) override;
  void on_retried(const ports::Batch& batch) override { checker_.on_retried(batch); }
  void on_ended(std::vector<ports::EndedCall>& ended) override;

 private:
  struct Source {
    TrafficSpec spec;
    Arrivals arrivals;
    Random random;
    std::vector<InferRequest> shapes;
  };
  void schedule_arrival(size_t source);
  void arrive(size_t source);
  std::shared_ptr<const InferRequest> make_request(Source& source);
  void arm_timers(const Source& source, const InferRequest& request,
                  const ports::Submitted& submitted);
  void end(const ports::EndedCall& ended);
  bool check();
  [[nodiscard]] bool strikes(PlantedFault fault, uint64_t& occasions) const;
  [[nodiscard]] uint64_t queued() const;
  [[nodiscard]] uint64_t running() const;

  ScenarioResult result_;
  World world_;
  Trace trace_;
  Checker checker_;
  service::LedgerPermits ledger_;
  SimPermits permits_;
  std::vector<std::unique_ptr<Recorder>> recorders_;  // of models_
  std::vector<std::unique_ptr<SimModel>> models_;
  std::vector<bool> ordered_;     // by model
  std::vector<uint64_t> newest_;  // answer of an ordered model
  std::vector<Source> sources_;
  Random faults_;
  uint64_t next_request_ = 1;
  uint64_t ends_ = 0;
  uint64_t deadline_ends_ = 0;
  std::shared_ptr<uint64_t> alive_ = std::make_shared<uint64_t>(0);
  std::shared_ptr<const InferRequest> leaked_;
  Instant arrivals_end_;
};

InferRequest request_of_shape(uint32_t shape) {
  InferRequest request;
  request.model = "sim";
  request.inputs = {{.name = "x", .type = DataType::kFp32, .shape = {1, 4 + shape}, .data = {}}};
  request.batch_key = layout_hash(request, true);
  return request;
}

// Without ageing, a level that is never idle starves those below it.
ModelSpec with_fault(ModelSpec spec, PlantedFault fault) {
  if (fault == PlantedFault::kStarved) spec.rank.ageing = Duration::s(36'000);
  return spec;
}

Run::Run(const Scenario& scenario, const ScenarioOptions& options)
    : checker_({.starvation_bound = scenario.starvation_bound}),
      ledger_(scenario.permits),
      permits_(world_, ledger_),
      faults_(options.seed, 2) {
  result_.options = options;
  result_.about = scenario.about;
  result_.duration = options.duration > Duration() ? options.duration : scenario.duration;
  arrivals_end_ = world_.now() + result_.duration;
  for (const ModelSpec& of_scenario : scenario.models) {
    const ModelSpec spec = with_fault(of_scenario, options.fault);
    recorders_.push_back(std::make_unique<Recorder>(trace_, options.decisions, spec));
    const SimModelParts parts{world_, permits_, *this, *recorders_.back(), scenario.hand_over};
    ordered_.push_back(spec.config.batching.preserve_ordering);
    newest_.push_back(0);
    models_.push_back(
        std::make_unique<SimModel>(spec, parts, options.seed * 1000 + models_.size()));
  }
  for (const TrafficSpec& spec : scenario.traffic) {
    Source source{spec, Arrivals(spec.arrivals), Random(options.seed, 100 + sources_.size()), {}};
    for (uint32_t i = 0; i < spec.shapes; ++i) source.shapes.push_back(request_of_shape(i));
    sources_.push_back(std::move(source));
  }
  for (size_t i = 0; i < sources_.size(); ++i) schedule_arrival(i);
}

void Run::schedule_arrival(size_t index) {
  Source& source = sources_[index];
  const auto gap = source.arrivals.next_gap(source.random);
  if (!gap || world_.now() + *gap > arrivals_end_) return;
  world_.at(world_.now() + *gap, [this, index] { arrive(index); }, kArrivalPriority);
}

std::shared_ptr<const InferRequest> Run::make_request(Source& source) {
  const TrafficSpec& spec = source.spec;
  ++*alive_;
  std::shared_ptr<InferRequest> request(
      new InferRequest(source.shapes[source.random.below(spec.shapes)]),
      [alive = alive_](InferRequest* gone) {
        --*alive;
        delete gone;
      });
  request->context.id = RequestId(next_request_++);
  request->version = static_cast<int64_t>(spec.model);  // tells end() whose it is
  request->context.arrival = world_.now();
  request->items = 1 + source.random.below(spec.most_items);
  request->inputs.front().shape.front() = static_cast<int64_t>(request->items);
  request->context.bytes = 64 * request->items;
  request->context.priority =
      spec.first_level + static_cast<uint32_t>(source.random.below(spec.levels));
  if (spec.deadline > Duration()) {
    const double allowed = spec.deadline.seconds() * (0.5 + source.random.uniform());
    request->context.deadline = world_.now() + Duration::from_seconds(allowed);
  }
  return request;
}

void Run::arrive(size_t index) {
  Source& source = sources_[index];
  schedule_arrival(index);
  ports::DispatchedCall call;
  const auto request = make_request(source);
  call.call.request = request;
  ++result_.submitted;
  const ports::Submitted submitted = models_[source.spec.model]->submit(call);
  const uint64_t number = request->context.id.value();
  if (!submitted.accepted) {
    checker_.on_refused(number);
    ++result_.refused;
    return;
  }
  checker_.on_accepted(number, submitted.queue_deadline, request->context.deadline, world_.now());
  arm_timers(source, *request, submitted);
  if (result_.options.fault == PlantedFault::kLeaked && number == kFaultAt) leaked_ = request;
}

// What a gateway does for a call: its queue deadline, its deadline, and a client that goes away.
void Run::arm_timers(const Source& source, const InferRequest& request,
                     const ports::Submitted& submitted) {
  SimModel* model = models_[source.spec.model].get();
  const ports::CallId id = submitted.id;
  const auto abort_at = [&](Instant when, EndReason reason, ports::AbortScope scope) {
    world_.at(when, [=] { model->abort(id, reason, scope); }, kTimerPriority);
  };
  if (!submitted.queue_deadline.is_never()) {
    abort_at(submitted.queue_deadline, EndReason::kDeadlineQueued, ports::AbortScope::kOnlyQueued);
  }
  if (!request.context.deadline.is_never()) {
    abort_at(request.context.deadline, EndReason::kDeadlineRunning,
             ports::AbortScope::kAlsoRunning);
  }
  Random& random = sources_[static_cast<size_t>(&source - sources_.data())].random;
  if (source.spec.cancel > 0 && random.chance(source.spec.cancel)) {
    const double after = random.exponential(source.spec.cancel_after.seconds());
    abort_at(world_.now() + Duration::from_seconds(after), EndReason::kClientGone,
             ports::AbortScope::kAlsoRunning);
  }
}

void Run::on_batch(const ports::Batch& batch, const ModelConfig& config) {
  ++result_.batches;
  result_.batch_items += batch.items;
  const bool merge = config.batches() && config.batching.enabled;
  checker_.on_batch(batch, config.max_batch_size, merge, world_.now());
}

bool Run::strikes(PlantedFault fault, uint64_t& occasions) const {
  return result_.options.fault == fault && ++occasions == kFaultAt;
}

void Run::on_ended(std::vector<ports::EndedCall>& ended) {
  for (const ports::EndedCall& call : ended) {
    if (strikes(PlantedFault::kLost, ends_)) continue;
    const EndReason reason = call.end.reason;
    const bool deadline =
        reason == EndReason::kDeadlineQueued || reason == EndReason::kDeadlineRunning;
    if (deadline && result_.options.fault == PlantedFault::kLate && deadline_ends_++ == 0) {
      world_.at(world_.now() + kLateBy, [this, call] { end(call); }, kTimerPriority);
      continue;
    }
    end(call);
    if (strikes(PlantedFault::kDoubled, ends_)) end(call);
  }
}

void Run::end(const ports::EndedCall& ended) {
  const uint64_t number = ended.call.call.request->context.id.value();
  const EndReason reason = ended.end.reason;
  checker_.on_end(number, reason, world_.now());
  const auto model = static_cast<size_t>(*ended.call.call.request->version);
  const bool answers = reason == EndReason::kOk || reason == EndReason::kEngineFailed;
  if (answers && ordered_[model]) checker_.on_ordered_answer(number, newest_[model], world_.now());
  trace_.hash.add(number);
  trace_.hash.add(static_cast<uint64_t>(reason));
  trace_.hash.add(static_cast<uint64_t>(world_.now().ns()));
  switch (reason) {
    case EndReason::kOk:
      ++result_.answered;
      result_.latency.add(world_.now() - ended.call.timings.queued);
      break;
    case EndReason::kDeadlineQueued:
    case EndReason::kDeadlineRunning:
      ++result_.expired;
      break;
    case EndReason::kClientGone:
      ++result_.cancelled;
      break;
    default:
      ++result_.failed;
      break;
  }
}

uint64_t Run::queued() const {
  uint64_t sum = 0;
  for (const auto& model : models_) sum += model->queued();
  return sum;
}

uint64_t Run::running() const {
  uint64_t sum = 0;
  for (const auto& model : models_) sum += model->running();
  return sum;
}

// A late end is on its way: the conservation of calls is broken by intent until then.
bool Run::check() {
  const bool holding = result_.options.fault == PlantedFault::kLate && deadline_ends_ > 0;
  if (!holding) checker_.on_event(queued(), running(), world_.now());
  return !checker_.failed();
}

ScenarioResult Run::finish() {
  world_.run_until(arrivals_end_ + kDrain, [this] { return check(); });
  if (!checker_.failed()) checker_.on_over(queued(), running(), *alive_, world_.now());
  result_.violations = checker_.violations();
  result_.trace_hash = trace_.hash.value();
  result_.events = world_.count();
  return std::move(result_);
}

}  // namespace

std::string_view planted_fault_name(PlantedFault fault) {
  static constexpr std::array<std::string_view, 6> kNames = {"none", "lost",    "doubled",
                                                             "late", "starved", "leaked"};
  return kNames[static_cast<size_t>(fault)];
}

std::optional<PlantedFault> parse_planted_fault(std::string_view name) {
  for (int i = 0; i < 6; ++i) {
    const auto fault = static_cast<PlantedFault>(i);
    if (planted_fault_name(fault) == name) return fault;
  }
  return std::nullopt;
}

double ScenarioResult::mean_batch() const {
  return batches == 0 ? 0 : static_cast<double>(batch_items) / static_cast<double>(batches);
}

ScenarioResult run_scenario(const Scenario& scenario, const ScenarioOptions& options) {
  return Run(scenario, options).finish();
}

Result<ScenarioResult, std::string> run_scenario(const ScenarioOptions& options) {
  const auto scenario = named_scenario(options.scenario, options.seed);
  if (!scenario) {
    return fail(fmt::format("there is no scenario '{}'; there are: {}", options.scenario,
                            fmt::join(scenario_names(), ", ")));
  }
  return run_scenario(*scenario, options);
}

}  // namespace baton::sim
