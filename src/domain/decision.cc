#include "domain/decision.h"

#include <array>

namespace baton {
namespace {

struct Word {
  std::string_view name;
  std::string_view meaning;
};

constexpr std::array<Word, kDecisionKindCount> kKinds = {{
    {"admit",
     "A request enters the queue. `detail`: 0 it waits, 1 an idle instance (`instance`) is woken, "
     "2 "
     "it runs on the thread that brought it."},
    {"refuse",
     "A request is turned away at the door. By a worker, `queued` is the requests that it holds "
     "and `detail` their bytes; by a model, `detail` is 0."},
    {"requeue",
     "A member of a batch that failed is queued again, at its old rank; or a request goes behind "
     "others."},
    {"form_batch",
     "Instance `instance` runs a batch of `items` rows. `request`: its first member; `detail`: "
     "members."},
    {"wait",
     "Instance `instance` holds `items` rows back. `detail`: nanoseconds until it asks "
     "again."},
    {"expire", "A request ends by its deadline."},
    {"cancel", "A request ends for another reason than its deadline, before it has a result."},
    {"finish", "The batch of instance `instance` has ended. `detail`: its number."},
}};

constexpr std::array<Word, kDecisionReasonCount> kReasons = {{
    {"none", "No reason was given."},
    {"within_limits", "No limit stands against it."},
    {"items_limit", "The rows queued would exceed `limits.queue_items`."},
    {"bytes_limit", "The bytes queued would exceed `limits.queue_bytes`."},
    {"calls_limit", "More calls than can be told apart are in the model at once (16,777,215)."},
    {"level_limit", "`max_queue_size` requests of its priority level wait already."},
    {"too_large", "It holds more rows than `max_batch_size`."},
    {"deadline_passed", "Its deadline had passed when it came."},
    {"in_flight_limit", "The worker holds its share of `limits.in_flight`."},
    {"in_flight_bytes_limit",
     "The bodies that the worker holds would exceed its share of "
     "`limits.in_flight_bytes`."},
    {"shutting_down", "The model takes no more requests, or its queue is closed."},
    {"queue_timeout",
     "It has waited as long as the queue's policy says, which is to delay it: it goes behind those "
     "of its level that wait now."},
    {"retry_alone", "Its batch failed: it runs alone, so that one request's values fail no other."},
    {"trial", "A larger batch than pays by the curve, to see whether the curve is right."},
    {"batch_full", "No more rows fit, pay, or may be joined."},
    {"preferred_size", "The largest of `preferred_batch_size` that is queued."},
    {"delay_over", "The oldest member has waited `max_queue_delay_microseconds`."},
    {"no_gain_from_waiting", "Waiting for more would serve no more rows a second."},
    {"deadline_bounds", "More or other members would miss a deadline."},
    {"wait_for_arrivals", "The arrivals expected make a batch that serves more rows a second."},
    {"queue_deadline", "Its deadline, or the longest time in the queue, passed while it waited."},
    {"run_deadline", "Its deadline passed while it ran."},
    {"client_gone", "The client closed or cancelled."},
    {"run_ended", "The run gave results."},
    {"run_failed", "The run failed."},
    {"run_terminated",
     "The run was terminated: all of its members were gone, or the process ends."},
}};

constexpr std::array<Word, kInputKindCount> kInputs = {{
    {"submit",
     "A request came: `request`, `items`, `bytes`, `priority` (0: the default level), `key` (hash "
     "of what must be equal in a batch), `deadline_ns`."},
    {"will_ask", "Instance `instance` waits for a permit and will ask."},
    {"next", "Instance `instance` is free and asks for a batch."},
    {"finish", "The run of instance `instance` ended: `outcome` done, failed or terminated."},
    {"abort",
     "`call` is to end with `end_reason`; `scope` queued: only if it has not begun, or running."},
    {"stop_accepting", "No more requests are taken; they are refused with `end_reason`."},
    {"close", "What is queued ends with `end_reason`."},
    {"admission",
     "A worker refused a request: `request`, `items`, `bytes`, `deadline_ns`, and what it held, "
     "`in_flight` requests of `in_flight_bytes`."},
    {"add_instance", "One more instance, `instance`, is about to ask."},
    {"remove_instance", "Instance `instance` runs nothing and asks no more."},
}};

constexpr std::array<std::string_view, 3> kOutcomes = {"done", "failed", "terminated"};

}  // namespace

std::string_view decision_kind_name(DecisionKind kind) {
  return kKinds[static_cast<size_t>(kind)].name;
}

std::string_view decision_kind_meaning(DecisionKind kind) {
  return kKinds[static_cast<size_t>(kind)].meaning;
}

std::string_view decision_reason_name(DecisionReason reason) {
  return kReasons[static_cast<size_t>(reason)].name;
}

std::string_view decision_reason_meaning(DecisionReason reason) {
  return kReasons[static_cast<size_t>(reason)].meaning;
}

std::string_view input_kind_name(InputKind kind) {
  return kInputs[static_cast<size_t>(kind)].name;
}

std::string_view input_kind_meaning(InputKind kind) {
  return kInputs[static_cast<size_t>(kind)].meaning;
}

std::optional<InputKind> parse_input_kind(std::string_view name) {
  for (int i = 0; i < kInputKindCount; ++i) {
    const auto kind = static_cast<InputKind>(i);
    if (input_kind_name(kind) == name) return kind;
  }
  return std::nullopt;
}

std::string_view run_outcome_name(RunOutcome outcome) {
  return kOutcomes[static_cast<size_t>(outcome)];
}

std::optional<RunOutcome> parse_run_outcome(std::string_view name) {
  for (size_t i = 0; i < kOutcomes.size(); ++i) {
    if (kOutcomes[i] == name) return static_cast<RunOutcome>(i);
  }
  return std::nullopt;
}

}  // namespace baton
