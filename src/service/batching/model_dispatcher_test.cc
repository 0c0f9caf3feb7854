#include "service/batching/model_dispatcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace baton::service {
namespace {

using ports::AbortScope;
using ports::Batch;
using ports::EndedCall;

struct Decisions final : ports::DecisionSink {
  void record(const Decision& decision) override { list.push_back(decision); }
  [[nodiscard]] bool takes_inputs() const override { return keeps_inputs; }
  void input(const DecisionInput& input) override { inputs.push_back(input); }
  // Of the newest decision.
  [[nodiscard]] std::pair<DecisionKind, DecisionReason> last() const {
    return {list.back().kind, list.back().reason};
  }
  bool keeps_inputs = true;
  std::vector<DecisionInput> inputs;
  [[nodiscard]] size_t count(DecisionKind kind) const {
    size_t found = 0;
    for (const Decision& decision : list) found += decision.kind == kind ? 1 : 0;
    return found;
  }
  std::vector<Decision> list;
};

struct Dispatcher : ::testing::Test {
  Dispatcher() {
    options.config.name = "m";
    options.config.max_batch_size = 8;
    options.config.batching.enabled = true;
  }
  ModelDispatcher& make() {
    dispatcher = std::make_unique<ModelDispatcher>(options, decisions);
    for (uint32_t i = 0; i < std::max(options.config.instance_count, 1U); ++i) ask(i);
    return *dispatcher;
  }
  ports::Submitted submit(InferRequest request = {}) {
    request.context.id = RequestId(++requests);
    ports::DispatchedCall call;
    call.call.request = std::make_shared<const InferRequest>(std::move(request));
    return dispatcher->submit(call, now);
  }
  ports::NextBatch ask(ports::InstanceIndex instance = 0) {
    batches.resize(std::max<size_t>(batches.size(), instance + 1));
    return dispatcher->next(instance, now, batches[instance], ended);
  }
  void finish(ports::InstanceIndex instance = 0) {
    Batch& batch = batches[instance];
    Result<ports::BatchResult, ports::RunFailure> outcome;
    outcome->results.resize(batch.members.size());
    dispatcher->finish(instance, batch, outcome, now, ended);
    batch.members.clear();
  }
  void fail_run() {
    Result<ports::BatchResult, ports::RunFailure> outcome =
        fail(ports::RunFailure{.message = "input 'ids' is out of range"});
    dispatcher->finish(0, batches[0], outcome, now, ended);
    batches[0].members.clear();
  }
  static InferRequest with_deadline(Instant deadline) {
    InferRequest request;
    request.context.deadline = deadline;
    return request;
  }

  DispatcherOptions options;
  Decisions decisions;
  std::unique_ptr<ModelDispatcher> dispatcher;
  std::vector<Batch> batches;
  std::vector<EndedCall> ended;
  Instant now = Instant::from_ns(1'000'000);
  uint64_t requests = 0;
};

TEST_F(Dispatcher, ArrivalsDuringARunFormTheNextBatch) {  // U138
  make();
  submit();
  ask();
  for (int i = 0; i < 4; ++i) submit();
  finish();
  ask();
  EXPECT_EQ(batches[0].members.size(), 4U);
  finish();
  EXPECT_EQ(ended.size(), 5U);
  EXPECT_EQ(decisions.count(DecisionKind::kFormBatch), 2U);
}

TEST_F(Dispatcher, CountsTheRunsOfEachBatchSize) {
  make();
  for (int rows : {1, 3, 3}) {
    InferRequest request;
    request.items = static_cast<uint64_t>(rows);
    submit(request);
    ask();
    const Instant started = now;
    now = now + Duration::us(10);
    Result<ports::BatchResult, ports::RunFailure> outcome;
    outcome->results.resize(1);
    outcome->times = {started + Duration::us(1), started + Duration::us(8)};
    dispatcher->finish(0, batches[0], outcome, now, ended);
    batches[0].members.clear();
  }
  submit();
  ask();
  fail_run();  // is none of them
  const auto totals = dispatcher->batch_totals();
  ASSERT_EQ(totals.size(), 2U);
  EXPECT_EQ(totals[0].items, 1U);
  EXPECT_EQ(totals[0].runs, 1U);
  EXPECT_EQ(totals[1].items, 3U);
  EXPECT_EQ(totals[1].runs, 2U);
  EXPECT_EQ(totals[1].input_ns, 2'000U);
  EXPECT_EQ(totals[1].infer_ns, 14'000U);
  EXPECT_EQ(totals[1].output_ns, 4'000U);
}

TEST_F(Dispatcher, TheLowestLevelWaitsNoLongerThanItsAgeingUnderAFlood) {
  options.config.batching.priority_levels = 3;
  options.config.batching.default_priority_level = 1;
  options.rank = {.patience = Duration::ms(100), .ageing = Duration::ms(100)};
  options.limits.max_items = 64;
  make();
  InferRequest lowest;
  lowest.context.priority = 3;
  for (int i = 0; i < 32; ++i) submit();  // waits already
  const Instant came = now;
  const uint64_t number = requests + 1;
  ASSERT_TRUE(submit(lowest).accepted);
  const Duration run = Duration::ms(10);  // 8 rows, while 16 come
  Instant began = Instant::never();
  while (began.is_never() && now - came < Duration::s(5)) {
    ask();
    for (const auto& member : batches[0].members) {
      if (member.call.request->context.id.value() == number) began = now;
    }
    for (int i = 0; i < 16; ++i) submit();
    now = now + run;
    finish();
  }
  // Patience, two levels of ageing, and what 64 rows take.
  EXPECT_LE(began - came, Duration::ms(100 + 2 * 100 + 8 * 10));
  EXPECT_GE(began - came, Duration::ms(2 * 100)) << "levels are strict until then";
}

TEST_F(Dispatcher, AQueueTimeoutThatDelaysPutsTheCallBehindThoseThatWait) {
  options.config.max_batch_size = 1;
  options.config.batching.default_policy = {.timeout = Duration::ms(5),
                                            .timeout_action = TimeoutAction::kDelay};
  make();
  submit();
  ask();  // runs
  const auto first = submit();
  EXPECT_TRUE(first.queue_deadline.is_never()) << "it does not end by it";
  now = now + Duration::ms(4);
  submit();
  now = now + Duration::ms(2);
  finish();
  ask();
  ASSERT_EQ(batches[0].members.size(), 1U);
  EXPECT_EQ(batches[0].members[0].call.request->context.id, RequestId(3));
  EXPECT_EQ(decisions.count(DecisionKind::kRequeue), 1U);
  now = now + Duration::s(1);
  finish();
  ask();
  EXPECT_EQ(batches[0].members[0].call.request->context.id, RequestId(2)) << "once only";
  finish();
  EXPECT_EQ(ended.size(), 3U);
}

TEST_F(Dispatcher, AnExpiredCallOfADelayingQueueNeverRuns) {
  options.config.batching.default_policy = {.timeout = Duration::ms(5),
                                            .timeout_action = TimeoutAction::kDelay};
  make();
  submit(with_deadline(now + Duration::ms(8)));
  now = now + Duration::ms(9);
  ask();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].end.reason, EndReason::kDeadlineQueued);
  EXPECT_TRUE(batches[0].members.empty());
}

struct OrderedDispatcher : Dispatcher {
  OrderedDispatcher() {
    options.config.batching.preserve_ordering = true;
    options.config.max_batch_size = 1;
    options.config.instance_count = 2;
    make();
    calls = {submit().id, submit().id};
    ask(0);
    ask(1);
  }
  std::vector<uint64_t> order() {
    std::vector<uint64_t> numbers;
    for (const auto& end : ended) numbers.push_back(end.call.call.request->context.id.value());
    return numbers;
  }
  std::vector<ports::CallId> calls;
};

TEST_F(OrderedDispatcher, AnAnswerWaitsForThoseOfEarlierCalls) {  // core#520
  finish(1);
  EXPECT_TRUE(ended.empty());
  EXPECT_EQ(dispatcher->running_calls(), 2U) << "it has not left";
  finish(0);
  EXPECT_EQ(order(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(dispatcher->running_calls(), 0U);
}

TEST_F(OrderedDispatcher, AnEarlierCallThatGoesLetsTheAnswerLeave) {
  finish(1);
  dispatcher->abort(calls[0], EndReason::kClientGone, AbortScope::kAlsoRunning, now, ended);
  EXPECT_EQ(order(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(ended[1].end.reason, EndReason::kOk);
  finish(0);
  EXPECT_EQ(ended.size(), 2U);
}

TEST_F(OrderedDispatcher, AnAnswerThatIsHeldBackMayMissItsDeadline) {
  finish(1);
  const auto aborted = dispatcher->abort(calls[1], EndReason::kDeadlineRunning,
                                         AbortScope::kAlsoRunning, now, ended);
  EXPECT_TRUE(aborted.reached);
  EXPECT_FALSE(aborted.terminate);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].end.reason, EndReason::kDeadlineRunning);
  finish(0);
  EXPECT_EQ(order(), (std::vector<uint64_t>{2, 1}));
}

TEST_F(OrderedDispatcher, BatchesAreFormedInTheOrderOfArrival) {
  submit(with_deadline(now + Duration::s(9)));
  submit(with_deadline(now + Duration::ms(50)));
  finish(0);
  ask(0);
  EXPECT_EQ(batches[0].members[0].call.request->context.id, RequestId(3));
  finish(0);
  finish(1);
  ask(1);
  finish(1);
  EXPECT_EQ(order(), (std::vector<uint64_t>{1, 2, 3, 4}));
}

TEST_F(Dispatcher, WakesOneInstanceForWhatOneBatchTakes) {
  options.config.instance_count = 2;
  make();
  EXPECT_TRUE(submit().wake);
  EXPECT_FALSE(submit().wake) << "the instance that is on its way takes both";
  InferRequest other;
  other.batch_key = 7;
  other.inputs.resize(1);
  EXPECT_TRUE(submit(other).wake) << "another shape is another batch";
}

TEST_F(Dispatcher, NumbersDecisionsWithoutGaps) {
  make();
  submit();
  ask();
  finish();
  ask();
  for (size_t i = 0; i < decisions.list.size(); ++i) {
    EXPECT_EQ(decisions.list[i].sequence, i + 1);
  }
}

TEST_F(Dispatcher, NumbersItsEntriesWithoutGapsAndNamesThemInDecisions) {
  make();
  dispatcher->will_ask(0);
  const ports::CallId id = submit().id;
  ask();
  dispatcher->abort(id, EndReason::kClientGone, AbortScope::kAlsoRunning, now, ended);
  finish();
  dispatcher->stop_accepting(EndReason::kShuttingDown);
  dispatcher->close(EndReason::kShuttingDown, now, ended);
  std::vector<InputKind> kinds;
  for (const DecisionInput& input : decisions.inputs) {
    kinds.push_back(input.kind);
    EXPECT_EQ(input.entry, kinds.size());
  }
  EXPECT_EQ(kinds,
            (std::vector<InputKind>{InputKind::kNext, InputKind::kWillAsk, InputKind::kSubmit,
                                    InputKind::kNext, InputKind::kAbort, InputKind::kFinish,
                                    InputKind::kStopAccepting, InputKind::kClose}));
  EXPECT_EQ(decisions.list[0].entry, 3U);      // admit
  EXPECT_EQ(decisions.list.back().entry, 6U);  // finish
}

TEST_F(Dispatcher, KeepsNoInputsForASinkThatTakesNone) {
  decisions.keeps_inputs = false;
  make();
  submit();
  EXPECT_TRUE(decisions.inputs.empty());
  EXPECT_EQ(decisions.list.back().entry, 2U);
}

TEST_F(Dispatcher, SaysWhyEachRequestEnded) {
  using enum DecisionReason;
  make();
  const auto abort = [&](ports::CallId id, EndReason reason) {
    dispatcher->abort(id, reason, AbortScope::kAlsoRunning, now, ended);
    return decisions.last();
  };
  const auto expired = [](DecisionReason reason) {
    return std::pair(DecisionKind::kExpire, reason);
  };
  const auto cancelled = [](DecisionReason reason) {
    return std::pair(DecisionKind::kCancel, reason);
  };
  EXPECT_EQ(abort(submit().id, EndReason::kDeadlineQueued), expired(kQueueDeadline));
  EXPECT_EQ(abort(submit().id, EndReason::kClientGone), cancelled(kClientGone));
  const ports::CallId late = submit().id;
  const ports::CallId gone = submit().id;
  ask();
  EXPECT_EQ(abort(late, EndReason::kDeadlineRunning), expired(kRunDeadline));
  EXPECT_EQ(abort(gone, EndReason::kClientGone), cancelled(kClientGone));
  finish();
  submit();
  dispatcher->close(EndReason::kShuttingDown, now, ended);
  EXPECT_EQ(decisions.last(), cancelled(kShuttingDown));
}

TEST_F(Dispatcher, SaysWhyItRefused) {
  using enum DecisionReason;
  make();
  submit({.items = 9});
  EXPECT_EQ(decisions.last(), std::pair(DecisionKind::kRefuse, kTooLarge));
  const ports::Submitted late = submit(with_deadline(now));
  EXPECT_EQ(decisions.last(), std::pair(DecisionKind::kRefuse, kDeadlinePassed));
  EXPECT_NE(dispatcher->refusal_text(late.limit).find("the deadline passed"), std::string::npos);
  dispatcher->stop_accepting(EndReason::kShuttingDown);
  const ports::Submitted closed = submit();
  EXPECT_EQ(decisions.last(), std::pair(DecisionKind::kRefuse, kShuttingDown));
  EXPECT_NE(dispatcher->refusal_text(closed.limit).find("shutting down"), std::string::npos);
}

TEST_F(Dispatcher, SaysHowARunEnded) {
  using enum DecisionReason;
  make();
  submit();
  ask();
  finish();
  EXPECT_EQ(decisions.last(), std::pair(DecisionKind::kFinish, kRunEnded));
  submit();
  submit();
  ask();
  fail_run();
  EXPECT_EQ(decisions.last(), std::pair(DecisionKind::kFinish, kRunFailed));
  EXPECT_EQ(decisions.count(DecisionKind::kRequeue), 2U);
  ask();
  Result<ports::BatchResult, ports::RunFailure> outcome =
      fail(ports::RunFailure{.terminated = true});
  dispatcher->finish(0, batches[0], outcome, now, ended);
  EXPECT_EQ(decisions.last(), std::pair(DecisionKind::kFinish, kRunTerminated));
}

TEST_F(Dispatcher, SaysWhatAnAdmittedRequestSetsOff) {
  options.curve = LatencyCurve({{.batch_size = 1, .duration = Duration::us(3), .samples = 9}});
  make();
  submit();
  EXPECT_EQ(decisions.list.back().detail, 2U) << "runs on the thread that brought it";
  submit();
  EXPECT_EQ(decisions.list.back().detail, 0U) << "waits";
}

TEST_F(Dispatcher, RefusesBeyondItsItemsAndSaysTheLimit) {  // server#980: no queue without bound
  options.limits.max_items = 3;
  make();
  EXPECT_TRUE(submit({.items = 2}).accepted);
  const ports::Submitted refused = submit({.items = 2});
  EXPECT_FALSE(refused.accepted);
  EXPECT_EQ(refused.reason, EndReason::kQueueFull);
  EXPECT_GT(refused.retry_after, Duration());
  EXPECT_NE(dispatcher->refusal_text(refused.limit).find("3 items"), std::string::npos);
  EXPECT_EQ(decisions.list.back().reason, DecisionReason::kItemsLimit);
}

TEST_F(Dispatcher, RefusesBeyondItsBytes) {
  options.limits.max_bytes = 100;
  make();
  InferRequest request;
  request.context.bytes = 60;
  EXPECT_TRUE(submit(request).accepted);
  EXPECT_EQ(submit(request).limit, DecisionReason::kBytesLimit);
  request.context.bytes = UINT64_MAX;  // the sum is below the limit, modulo 2^64
  EXPECT_EQ(submit(request).limit, DecisionReason::kBytesLimit);
}

TEST_F(Dispatcher, RefusesBeyondALevelsQueueWithoutCountingWhatRunsAtOnce) {
  options.config.batching.priority_levels = 2;
  options.config.batching.default_priority_level = 2;
  options.config.batching.level_policies[2].max_queue_size = 1;
  make();
  EXPECT_TRUE(submit().accepted);  // for the idle instance
  EXPECT_TRUE(submit().accepted);  // queued
  EXPECT_EQ(submit().limit, DecisionReason::kLevelLimit);
  InferRequest urgent;
  urgent.context.priority = 1;
  EXPECT_TRUE(submit(urgent).accepted);
}

TEST_F(Dispatcher, RefusesMoreItemsThanABatchHolds) {
  make();
  EXPECT_EQ(submit({.items = 9}).reason, EndReason::kTooLarge);
}

TEST_F(Dispatcher, AQueueTimeoutHoldsWhileEveryInstanceIsBusy) {  // server#7512
  options.config.batching.default_policy.timeout = Duration::ms(10);
  make();
  submit();
  ask();
  const ports::Submitted waiting = submit();
  EXPECT_EQ(waiting.queue_deadline, now + Duration::ms(10));
  now = waiting.queue_deadline;
  dispatcher->abort(waiting.id, EndReason::kDeadlineQueued, AbortScope::kOnlyQueued, now, ended);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].end.reason, EndReason::kDeadlineQueued);
}

TEST_F(Dispatcher, DoesNotRunWhatHasExpired) {
  make();
  submit();
  ask();
  submit(with_deadline(now + Duration::ms(5)));
  submit();
  now = now + Duration::ms(6);
  finish();
  ended.clear();
  ask();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].end.reason, EndReason::kDeadlineQueued);
  EXPECT_EQ(batches[0].members.size(), 1U);
}

TEST_F(Dispatcher, TheRequestsOwnDeadlineHoldsWithoutAnyConfiguration) {  // server#6920
  make();
  EXPECT_EQ(submit(with_deadline(now + Duration::ms(3))).queue_deadline, now + Duration::ms(3));
  EXPECT_EQ(submit(with_deadline(now)).reason, EndReason::kDeadlineQueued);
}

TEST_F(Dispatcher, AnAbortedMemberEndsAtOnceAndIsNotToldAgain) {
  make();
  const ports::CallId a = submit().id;
  const ports::CallId b = submit().id;
  ask();
  ASSERT_EQ(batches[0].members.size(), 2U);
  const auto first =
      dispatcher->abort(a, EndReason::kClientGone, AbortScope::kAlsoRunning, now, ended);
  EXPECT_TRUE(first.reached);
  EXPECT_FALSE(first.terminate);
  EXPECT_FALSE(
      dispatcher->abort(a, EndReason::kClientGone, AbortScope::kAlsoRunning, now, ended).reached);
  EXPECT_EQ(dispatcher->running_calls(), 1U);
  finish();
  ASSERT_EQ(ended.size(), 2U);
  EXPECT_EQ(ended[1].call.id, b);
  EXPECT_EQ(ended[1].end.reason, EndReason::kOk);
}

TEST_F(Dispatcher, TerminatesWhenTheLastMemberIsGone) {
  make();
  const ports::CallId a = submit().id;
  ask();
  EXPECT_FALSE(dispatcher->abort(a, EndReason::kDeadlineQueued, AbortScope::kOnlyQueued, now, ended)
                   .reached);
  EXPECT_TRUE(
      dispatcher->abort(a, EndReason::kClientGone, AbortScope::kAlsoRunning, now, ended).terminate);
  finish();
  EXPECT_EQ(ended.size(), 1U);
  EXPECT_EQ(dispatcher->running_calls(), 0U);
}

TEST_F(Dispatcher, AnOldIdReachesNobodyWhenItsSlotIsTakenAgain) {
  make();
  const ports::CallId old = submit().id;
  ask();
  finish();
  submit();
  EXPECT_FALSE(
      dispatcher->abort(old, EndReason::kClientGone, AbortScope::kAlsoRunning, now, ended).reached);
  EXPECT_EQ(dispatcher->queued_calls(), 1U);
}

TEST_F(Dispatcher, OneCallsBadValuesDoNotFailTheOthersOfItsBatch) {
  make();
  for (int i = 0; i < 3; ++i) submit();
  ask();
  const ports::CallId bad = batches[0].members[1].id;
  fail_run();
  EXPECT_TRUE(ended.empty());
  submit();  // does not join those that run alone
  for (int i = 0; i < 4; ++i) {
    ask();
    ASSERT_EQ(batches[0].members.size(), 1U);
    batches[0].members[0].id == bad ? fail_run() : finish();
  }
  ASSERT_EQ(ended.size(), 4U);
  for (const EndedCall& end : ended) {
    EXPECT_EQ(end.end.reason, end.call.id == bad ? EndReason::kEngineFailed : EndReason::kOk);
  }
}

TEST_F(Dispatcher, ManyFailuresBeforeDoNotTakeTheRunAloneFromOthers) {
  make();
  for (int i = 0; i < 20; ++i) {  // one client sends what always fails
    submit();
    ask();
    fail_run();
  }
  ended.clear();
  submit();
  submit();
  ask();
  fail_run();
  EXPECT_TRUE(ended.empty());
  for (int i = 0; i < 2; ++i) {
    ask();
    finish();
  }
  ASSERT_EQ(ended.size(), 2U);
  EXPECT_EQ(ended[1].end.reason, EndReason::kOk);
}

TEST_F(Dispatcher, AFailedRunEndsItsCallWithItsMessage) {
  make();
  submit();
  ask();
  fail_run();
  ASSERT_EQ(ended.size(), 1U);
  for (const EndedCall& end : ended) {
    EXPECT_EQ(end.end.reason, EndReason::kEngineFailed);
    EXPECT_EQ(end.end.refusal.message, "input 'ids' is out of range");
  }
}

TEST_F(Dispatcher, ClosingEndsTheQueueAndRefusesWhatComes) {
  make();
  submit();
  ask();
  submit();
  dispatcher->close(EndReason::kShuttingDown, now, ended);
  EXPECT_EQ(ended.size(), 1U);
  EXPECT_EQ(submit().reason, EndReason::kShuttingDown);
  finish();
  EXPECT_EQ(ended.back().end.reason, EndReason::kOk);
}

TEST_F(Dispatcher, AShortRunStaysOnTheCallersThreadWhenNobodyWaits) {
  options.curve = LatencyCurve({{.batch_size = 1, .duration = Duration::us(3), .samples = 9}});
  make();
  EXPECT_TRUE(submit().inline_run);
  EXPECT_FALSE(submit().inline_run) << "the instance is taken";
}

TEST_F(Dispatcher, ALongRunGoesToTheInstancesThread) {
  options.curve = LatencyCurve({{.batch_size = 1, .duration = Duration::us(300), .samples = 9}});
  make();
  const ports::Submitted submitted = submit();
  EXPECT_TRUE(submitted.wake);
  EXPECT_FALSE(submitted.inline_run);
}

// Keeps the queue deep for so many batches; each takes 1 ms and 0.1 ms an item. The largest batch.
size_t serve_batches(Dispatcher& test, int count) {
  size_t largest = 0;
  for (int i = 0; i < count; ++i) {
    while (test.dispatcher->queued_calls() < 20) test.submit();
    test.ask();
    const size_t size = test.batches[0].members.size();
    largest = std::max(largest, size);
    test.now = test.now + Duration::us(1000 + 100 * static_cast<int64_t>(size));
    test.finish();
    test.ended.clear();
  }
  return largest;
}

TEST_F(Dispatcher, ADeepQueueFindsOutThatALargerBatchPays) {
  options.curve = LatencyCurve({{1, Duration::us(1100), 5}, {2, Duration::us(1200), 5}});
  make();
  EXPECT_EQ(serve_batches(*this, 16), 2U);
  EXPECT_EQ(serve_batches(*this, 4), 4U);  // the trial
  EXPECT_EQ(serve_batches(*this, 100), 8U);
  const LatencyCurve curve = dispatcher->curve();
  ASSERT_EQ(curve.points().size(), 4U);
  EXPECT_NEAR(curve.predict(8).seconds(), 1800e-6, 20e-6);
}

TEST_F(Dispatcher, APreferredSizeIsNotExceededToTryALargerOne) {
  options.curve = LatencyCurve({{1, Duration::us(1100), 5}, {2, Duration::us(1200), 5}});
  options.config.batching.preferred_sizes = {2};
  make();
  EXPECT_EQ(serve_batches(*this, 100), 2U);
}

TEST_F(Dispatcher, EqualKeysOfDifferentLayoutsNeverMix) {
  make();
  submit();
  ask();
  for (int64_t width : {3, 4, 3}) {
    InferRequest request;
    request.batch_key = 42;  // a collision
    request.inputs = {{.name = "x", .type = DataType::kFp32, .shape = {1, width}, .data = {}}};
    submit(std::move(request));
  }
  finish();
  ask();
  EXPECT_EQ(batches[0].members.size(), 2U);
  finish();
  ask();
  EXPECT_EQ(batches[0].members.size(), 1U);
}

TEST_F(Dispatcher, AnInstanceThatWaitsForItsPermitIsNotWoken) {
  make();
  dispatcher->will_ask(0);
  EXPECT_FALSE(submit().wake);
  ask();
  EXPECT_TRUE(batches[0].formed());
}

TEST_F(Dispatcher, WaitsForArrivalsThatThroughputNeedsAndNoLonger) {
  options.config.batching.max_delay = Duration::ms(5);
  options.curve = LatencyCurve({{.batch_size = 1, .duration = Duration::ms(1), .samples = 9},
                                {.batch_size = 8, .duration = Duration::us(1500), .samples = 9}});
  make();
  Instant due = Instant::never();  // the run's end, or when to ask again
  bool waited = false;
  const auto ask_again = [&] {
    const ports::NextBatch next = ask();
    waited |= !next.ask_again.is_never();
    const Duration run = options.curve.predict(batches[0].items);
    due = batches[0].formed() ? now + run : next.ask_again;
  };
  for (int i = 0; i < 2000; ++i) {
    // 1,667 a second in bursts: more than single runs serve, with idle moments between.
    const Instant arrival = now + (i % 8 == 0 ? Duration::ms(4) : Duration::us(100));
    while (due <= arrival) {
      now = due;
      if (batches[0].formed()) finish();
      ask_again();
    }
    now = arrival;
    if (submit().wake) ask_again();
  }
  EXPECT_TRUE(waited);
  for (const EndedCall& end : ended) {
    ASSERT_LE(end.call.timings.started - end.call.timings.queued, Duration::ms(8))
        << "the delay and one run";
  }
}

TEST_F(Dispatcher, AnInstanceThatIsAddedTakesWork) {
  make();
  submit();
  ask();
  EXPECT_FALSE(submit().wake) << "the only instance runs";
  EXPECT_EQ(dispatcher->add_instance(now), 1U);
  ask(1);
  EXPECT_TRUE(batches[1].formed());
  finish(0);
  finish(1);
  EXPECT_EQ(ended.size(), 2U);
}

TEST_F(Dispatcher, AnInstanceThatIsRemovedIsNotWokenAndItsNumberIsGivenAgain) {
  options.config.instance_count = 2;
  make();
  dispatcher->remove_instance(0, now);
  const ports::Submitted submitted = submit();
  EXPECT_TRUE(submitted.wake);
  EXPECT_EQ(submitted.instance, 1U);
  EXPECT_EQ(dispatcher->add_instance(now), 0U);
  EXPECT_EQ(dispatcher->add_instance(now), 2U);
}

TEST_F(Dispatcher, WorkThatARemovedInstanceWasToTakeIsAnothers) {
  options.config.instance_count = 2;
  make();
  const ports::Submitted submitted = submit();
  ASSERT_TRUE(submitted.wake);
  const ports::NextBatch next = dispatcher->remove_instance(submitted.instance, now);
  EXPECT_TRUE(next.wake);
  EXPECT_NE(next.instance, submitted.instance);
}

}  // namespace
}  // namespace baton::service
