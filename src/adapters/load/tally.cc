#include <algorithm>

#include "adapters/load/load.h"

namespace baton::adapters::load {

uint64_t LoadResult::failed() const {
  uint64_t sum = 0;
  for (const auto& [status, count] : failures) sum += count;
  return sum;
}

double LoadResult::achieved_rate() const {
  return span > Duration() ? static_cast<double>(answered) / span.seconds() : 0;
}

double LoadResult::goodput() const {
  return span > Duration() ? static_cast<double>(within_objective) / span.seconds() : 0;
}

Tally::Tally(const LoadPlan& plan) : counted_from_(plan.counted_from), objective_(plan.objective) {
  for (const Duration send : plan.sends) result_.planned += counts(send) ? 1U : 0U;
  last_ = plan.sends.empty() ? Duration() : plan.sends.back();
}

void Tally::sent(Duration intended, Duration now) {
  if (counts(intended)) result_.lateness.add(now - intended);
}

void Tally::answered(Duration intended, Duration now) {
  if (!counts(intended)) return;
  ++result_.answered;
  result_.latency.add(now - intended);
  if (now - intended <= objective_) ++result_.within_objective;
  last_ = std::max(last_, now);
}

void Tally::failed(Duration intended, const std::string& status) {
  if (counts(intended)) ++result_.failures[status];
}

LoadResult Tally::take() {
  result_.span = last_ - counted_from_;
  return std::move(result_);
}

}  // namespace baton::adapters::load
