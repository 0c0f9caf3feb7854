#include "sim/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"

namespace baton::sim {
namespace {

constexpr size_t kMostViolations = 5;

}  // namespace

std::string_view violation_name(Violation::Kind kind) {
  static constexpr std::array<std::string_view, 7> kNames = {
      "lost", "doubled", "late", "starved", "leaked", "bad_batch", "disordered"};
  return kNames[static_cast<size_t>(kind)];
}

Checker::Call* Checker::find(uint64_t number) {
  if (number < first_ || number - first_ >= calls_.size()) return nullptr;
  return &calls_[number - first_];
}

void Checker::violate(Violation::Kind kind, Instant when, std::string text) {
  if (violations_.size() < kMostViolations) violations_.push_back({kind, when, std::move(text)});
}

void Checker::on_accepted(uint64_t number, Instant queue_deadline, Instant deadline, Instant now) {
  BATON_CHECK(number == first_ + calls_.size());
  calls_.push_back({State::kQueued, now, queue_deadline, deadline});
  ++accepted_;
}

void Checker::on_refused(uint64_t number) {
  BATON_CHECK(number == first_ + calls_.size());
  calls_.emplace_back();
}

void Checker::on_batch(const ports::Batch& batch, uint64_t max_items, bool merge, Instant now) {
  const InferRequest& first = *batch.members.front().call.request;
  uint64_t items = 0;
  for (const ports::DispatchedCall& member : batch.members) {
    const InferRequest& request = *member.call.request;
    items += request.items;
    if (!same_layout(first, request, true)) {
      violate(Violation::Kind::kBadBatch, now, fmt::format("batch {} mixes layouts", batch.number));
    }
    Call* call = find(request.context.id.value());
    if (call == nullptr || call->state != State::kQueued) {
      violate(Violation::Kind::kDoubled, now,
              fmt::format("request {} runs and was not queued", request.context.id.value()));
      continue;
    }
    call->state = State::kRunning;
    if (now > call->queue_deadline + limits_.lateness) {
      violate(Violation::Kind::kLate, now,
              fmt::format("request {} runs {} us after its queue deadline",
                          request.context.id.value(), (now - call->queue_deadline).us()));
    }
  }
  if ((merge && items > max_items) || (!merge && batch.members.size() > 1)) {
    violate(Violation::Kind::kBadBatch, now,
            fmt::format("batch {} holds {} items, at most {}", batch.number, items, max_items));
  }
}

// A failed batch's members that have not ended are queued again until their deadlines.
void Checker::on_retried(const ports::Batch& batch) {
  for (const ports::DispatchedCall& member : batch.members) {
    if (member.call.request == nullptr) continue;  // ended, and moved from
    Call* call = find(member.call.request->context.id.value());
    if (call == nullptr || call->state != State::kRunning) continue;
    call->state = State::kQueued;
    call->queue_deadline = call->deadline;
  }
}

void Checker::on_end(uint64_t number, EndReason reason, Instant now) {
  Call* call = find(number);
  if (call == nullptr || (call->state != State::kQueued && call->state != State::kRunning)) {
    violate(Violation::Kind::kDoubled, now, fmt::format("request {} ends again", number));
    return;
  }
  if (call->state == State::kQueued && reason == EndReason::kOk) {
    violate(Violation::Kind::kLost, now, fmt::format("request {} is answered unrun", number));
  }
  const bool deadline =
      reason == EndReason::kDeadlineQueued || reason == EndReason::kDeadlineRunning;
  const Instant due = reason == EndReason::kDeadlineQueued ? call->queue_deadline : call->deadline;
  if (deadline && now > due + limits_.lateness) {
    violate(Violation::Kind::kLate, now,
            fmt::format("request {} hears of its deadline {} us late", number, (now - due).us()));
  }
  call->state = State::kEnded;
  ++ended_;
  forget_ended();
}

void Checker::on_ordered_answer(uint64_t number, uint64_t& newest, Instant now) {
  if (number < newest) {
    violate(Violation::Kind::kDisordered, now,
            fmt::format("request {} is answered after request {}", number, newest));
  }
  newest = std::max(newest, number);
}

void Checker::forget_ended() {
  while (!calls_.empty() &&
         (calls_.front().state == State::kEnded || calls_.front().state == State::kRefused)) {
    calls_.pop_front();
    ++first_;
  }
}

void Checker::on_event(uint64_t queued, uint64_t running, Instant now) {
  if (accepted_ != queued + running + ended_) {
    violate(
        accepted_ > queued + running + ended_ ? Violation::Kind::kLost : Violation::Kind::kDoubled,
        now,
        fmt::format("{} accepted, but {} queued, {} running and {} ended", accepted_, queued,
                    running, ended_));
  }
  oldest_queued_ = std::max(oldest_queued_, first_);
  const Call* oldest = find(oldest_queued_);
  while (oldest != nullptr && oldest->state != State::kQueued) oldest = find(++oldest_queued_);
  if (oldest != nullptr && now - oldest->submitted > limits_.starvation_bound) {
    violate(
        Violation::Kind::kStarved, now,
        fmt::format("request {} has waited {} ms", oldest_queued_, (now - oldest->submitted).ms()));
  }
}

void Checker::on_over(uint64_t queued, uint64_t running, uint64_t requests_alive, Instant now) {
  if (accepted_ != ended_) {
    violate(Violation::Kind::kLost, now,
            fmt::format("{} accepted and {} ended when all is over", accepted_, ended_));
  }
  if (queued + running > 0 || requests_alive > 0) {
    violate(Violation::Kind::kLeaked, now,
            fmt::format("left when all is over: {} queued, {} running, {} requests in memory",
                        queued, running, requests_alive));
  }
}

}  // namespace baton::sim
