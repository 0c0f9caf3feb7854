#include "policy/sequences/sequence_table.h"

#include <algorithm>

#include "base/check.h"

namespace baton::policy {
namespace {

// Ids that ended idle and are remembered: at most 160 bytes each.
constexpr size_t kMostIdleIds = 4096;

}  // namespace

StepRefusal SequenceTable::arrive(StepNumber step, const SequenceStep& described, Instant now,
                                  SequenceChanges& changes) {
  expire(now, changes);
  if (closed_) return StepRefusal::kClosed;
  const auto found = by_id_.find(described.id);
  const bool there = found != by_id_.end();
  // Behind the step that ends it, a sequence can only begin anew.
  const bool over = there && !found->second->steps.empty() && found->second->steps.back().last;
  if (!described.start && (!there || over)) {
    return idle_ids_.contains(described.id) ? StepRefusal::kIdle : StepRefusal::kUnknown;
  }
  if (waiting_steps() >= limits_.steps) return StepRefusal::kTooManySteps;
  if (!there && live_ >= limits_.live && waiting_.size() >= limits_.beginnings) {
    return StepRefusal::kTooManyBeginnings;
  }
  Sequence* sequence = there ? found->second : nullptr;
  if (!there) {
    forget_idle(described.id);
    auto made = std::make_unique<Sequence>();
    sequence = made.get();
    sequence->number = next_++;
    sequence->id = described.id;
    by_id_.emplace(described.id, sequence);
    sequences_.emplace(sequence->number, std::move(made));
    waiting_.push_back(sequence->number);
  }
  if (sequence->live && sequence->steps.empty()) {
    quiet_.erase({sequence->quiet_since, sequence->number});
  }
  sequence->steps.push_back({step, described.start, described.end});
  steps_.emplace(step, sequence);
  if (sequence->live) {
    let_run(*sequence, changes);
  } else {
    admit(changes);
  }
  return StepRefusal::kNone;
}

void SequenceTable::let_run(Sequence& sequence, SequenceChanges& changes) {
  if (sequence.running || sequence.steps.empty()) return;
  const Step& first = sequence.steps.front();
  sequence.running = true;
  ++running_;
  if (first.start) ++begun_;
  changes.run.push_back({first.number, sequence.number, first.start});
}

void SequenceTable::ended(StepNumber step, bool succeeded, Instant now, SequenceChanges& changes) {
  const auto found = steps_.find(step);
  BATON_CHECK(found != steps_.end());
  Sequence& sequence = *found->second;
  BATON_CHECK(sequence.running && sequence.steps.front().number == step);
  const Step ended = sequence.steps.front();
  steps_.erase(found);
  sequence.steps.pop_front();
  sequence.running = false;
  --running_;
  if (!succeeded) lose_until_start(sequence, 0, changes);
  if (succeeded ? ended.last : ended.start) {
    leave_place(sequence, changes);
  } else {
    go_on(sequence, now, changes);
  }
  admit(changes);
}

// A live sequence none of whose steps runs.
void SequenceTable::go_on(Sequence& sequence, Instant now, SequenceChanges& changes) {
  if (!sequence.steps.empty()) return let_run(sequence, changes);
  if (closed_) return end(sequence, changes);
  sequence.quiet_since = now;
  quiet_.emplace(now, sequence.number);
}

// The sequence is over. Where it is to begin anew, it waits for that behind the others.
void SequenceTable::leave_place(Sequence& sequence, SequenceChanges& changes) {
  if (sequence.steps.empty()) return end(sequence, changes);
  sequence.live = false;
  --live_;
  waiting_.push_back(sequence.number);
}

bool SequenceTable::leave(StepNumber step, Instant now, SequenceChanges& changes) {
  const auto found = steps_.find(step);
  if (found == steps_.end()) return false;
  Sequence& sequence = *found->second;
  auto& steps = sequence.steps;
  const auto place = std::ranges::find(steps, step, &Step::number);
  const auto index = static_cast<size_t>(place - steps.begin());
  if (index == 0 && sequence.running) return false;
  const bool start = place->start;
  steps_.erase(found);
  steps.erase(place);
  lose_until_start(sequence, index, changes);
  // A beginning that does not come to pass ends what was before it all the same.
  if (start && index > 0 && index == steps.size()) steps.back().last = true;
  if (!steps.empty()) return true;
  if (sequence.live) {
    go_on(sequence, now, changes);
  } else {
    std::erase(waiting_, sequence.number);
    end(sequence, changes);
  }
  admit(changes);
  return true;
}

// The steps from `from` on that are no beginning, up to the next that is.
void SequenceTable::lose_until_start(Sequence& sequence, size_t from, SequenceChanges& changes) {
  auto& steps = sequence.steps;
  const auto first = steps.begin() + static_cast<std::ptrdiff_t>(from);
  const auto last = std::find_if(first, steps.end(), [](const Step& step) { return step.start; });
  for (auto step = first; step != last; ++step) {
    steps_.erase(step->number);
    changes.lost.push_back(step->number);
  }
  steps.erase(first, last);
}

// Without steps.
void SequenceTable::end(Sequence& sequence, SequenceChanges& changes) {
  if (sequence.live) --live_;
  changes.over.push_back(sequence.number);
  by_id_.erase(sequence.id);
  sequences_.erase(sequence.number);
}

void SequenceTable::admit(SequenceChanges& changes) {
  while (live_ < limits_.live && !waiting_.empty()) {
    Sequence& sequence = *sequences_.at(waiting_.front());
    waiting_.pop_front();
    sequence.live = true;
    ++live_;
    let_run(sequence, changes);
  }
}

void SequenceTable::expire(Instant now, SequenceChanges& changes) {
  while (!quiet_.empty() && now - quiet_.begin()->first >= limits_.idle) {
    Sequence& sequence = *sequences_.at(quiet_.begin()->second);
    quiet_.erase(quiet_.begin());
    ++idle_ended_;
    remember_idle(sequence.id);
    end(sequence, changes);
  }
  admit(changes);
}

void SequenceTable::stop_accepting(SequenceChanges& changes) {
  closed_ = true;
  while (!quiet_.empty()) {
    Sequence& sequence = *sequences_.at(quiet_.begin()->second);
    quiet_.erase(quiet_.begin());
    end(sequence, changes);
  }
  admit(changes);
}

void SequenceTable::close(SequenceChanges& changes) {
  stop_accepting(changes);
  waiting_.clear();
  for (auto entry = sequences_.begin(); entry != sequences_.end();) {
    Sequence& sequence = *entry->second;
    ++entry;
    auto& steps = sequence.steps;
    while (steps.size() > (sequence.running ? 1U : 0U)) {
      steps_.erase(steps.back().number);
      changes.lost.push_back(steps.back().number);
      steps.pop_back();
    }
    if (steps.empty()) end(sequence, changes);
  }
}

void SequenceTable::set_live_limit(uint32_t live, Instant now, SequenceChanges& changes) {
  limits_.live = live;
  expire(now, changes);
}

Instant SequenceTable::next_expiry() const {
  return quiet_.empty() ? Instant::never() : quiet_.begin()->first + limits_.idle;
}

void SequenceTable::remember_idle(const CorrelationId& id) {
  idle_ids_[id] = next_idle_;
  idle_order_.emplace_back(id, next_idle_++);
  if (idle_order_.size() <= kMostIdleIds) return;
  const auto& [oldest, when] = idle_order_.front();
  const auto found = idle_ids_.find(oldest);
  if (found != idle_ids_.end() && found->second == when) idle_ids_.erase(found);
  idle_order_.pop_front();
}

void SequenceTable::forget_idle(const CorrelationId& id) {
  idle_ids_.erase(id);
}

}  // namespace baton::policy
