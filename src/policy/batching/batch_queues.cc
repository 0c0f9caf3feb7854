#include "policy/batching/batch_queues.h"

#include <algorithm>

#include "base/check.h"

namespace baton::policy {

Instant rank_of(const QueuedCall& call, const RankRule& rule) {
  const Instant base = std::min({call.queue_deadline, call.delay_at, call.queued + rule.patience});
  return base + rule.ageing * (static_cast<int64_t>(call.level) - 1);
}

BatchQueues::BatchQueues(RankRule rule)
    : rule_(rule), keys_by_hash_(&pool_), key_order_(&pool_), by_due_(&pool_) {}

void BatchQueues::push(Slot slot, const QueuedCall& call, uint64_t hash, KeyIndex key) {
  if (slot >= nodes_.size()) nodes_.resize(slot + 1);
  Node& node = nodes_[slot];
  BATON_CHECK(node.key == kNoKey);
  if (key == kNoKey) key = open_key(hash);
  node = {call, rank_of(call, rule_), key};
  enter(key, {node.rank, call.sequence, slot});
  keys_[key]->items += call.items;

  watch(slot);
  if (call.level >= calls_by_level_.size()) calls_by_level_.resize(size_t{call.level} + 1);
  ++calls_by_level_[call.level];
  ++calls_;
  items_ += call.items;
  bytes_ += call.bytes;
}

void BatchQueues::remove(Slot slot) {
  BATON_CHECK(slot < nodes_.size() && nodes_[slot].key != kNoKey);
  Node& node = nodes_[slot];
  const KeyIndex key = node.key;
  leave(key, {node.rank, node.call.sequence, slot});
  keys_[key]->items -= node.call.items;
  if (keys_[key]->members.empty()) close_key(key);

  unwatch(slot);
  --calls_by_level_[node.call.level];
  --calls_;
  items_ -= node.call.items;
  bytes_ -= node.call.bytes;
  node.key = kNoKey;
}

void BatchQueues::demote(Slot slot) {
  move(slot, kLast);
}

void BatchQueues::delay(Slot slot, Instant now) {
  unwatch(slot);
  QueuedCall& call = nodes_[slot].call;
  call.delay_at = Instant::never();
  watch(slot);
  if (demoted(slot)) return;
  QueuedCall anew{.level = call.level};
  anew.queued = now;
  move(slot, rank_of(anew, rule_));
}

void BatchQueues::move(Slot slot, Instant rank) {
  Node& node = nodes_[slot];
  BATON_CHECK(node.key != kNoKey);
  leave(node.key, {node.rank, node.call.sequence, slot});
  node.rank = rank;
  enter(node.key, {node.rank, node.call.sequence, slot});
}

void BatchQueues::watch(Slot slot) {
  const QueuedCall& call = nodes_[slot].call;
  const Instant due = std::min(call.queue_deadline, call.delay_at);
  if (!due.is_never()) by_due_.insert({due, call.sequence, slot});
}

void BatchQueues::unwatch(Slot slot) {
  const QueuedCall& call = nodes_[slot].call;
  const Instant due = std::min(call.queue_deadline, call.delay_at);
  if (!due.is_never()) by_due_.erase({due, call.sequence, slot});
}

void BatchQueues::enter(KeyIndex key, const Ranked& entry) {
  RankedSet& members = keys_[key]->members;
  const bool leads = members.empty() || entry < *members.begin();
  if (leads && !members.empty()) key_order_.erase(head_of(key));
  members.insert(entry);
  if (leads) key_order_.insert(head_of(key));
}

void BatchQueues::leave(KeyIndex key, const Ranked& entry) {
  RankedSet& members = keys_[key]->members;
  const bool led = entry == *members.begin();
  if (led) key_order_.erase(head_of(key));
  members.erase(entry);
  if (led && !members.empty()) key_order_.insert(head_of(key));
}

uint64_t BatchQueues::calls_of_level(uint32_t level) const {
  return level < calls_by_level_.size() ? calls_by_level_[level] : 0;
}

Instant BatchQueues::first_rank() const {
  return key_order_.empty() ? Instant::never() : key_order_.begin()->rank;
}

std::optional<Slot> BatchQueues::first_due(Instant now) const {
  if (by_due_.empty() || by_due_.begin()->rank > now) return std::nullopt;
  return by_due_.begin()->index;
}

std::optional<Slot> BatchQueues::first_by_rank() const {
  if (key_order_.empty()) return std::nullopt;
  return keys_[key_order_.begin()->index]->members.begin()->index;
}

KeyIndex BatchQueues::open_key(uint64_t hash) {
  KeyIndex key = static_cast<KeyIndex>(keys_.size());
  if (free_keys_.empty()) {
    keys_.push_back(std::make_unique<Key>(&pool_));
    free_keys_.reserve(keys_.size());
  } else {
    key = free_keys_.back();
    free_keys_.pop_back();
  }
  keys_[key]->hash = hash;
  keys_by_hash_.emplace(hash, key);
  return key;
}

void BatchQueues::close_key(KeyIndex key) {
  const auto [first, last] = keys_by_hash_.equal_range(keys_[key]->hash);
  const auto found =
      std::find_if(first, last, [&](const auto& pair) { return pair.second == key; });
  BATON_CHECK(found != last);
  keys_by_hash_.erase(found);
  free_keys_.push_back(key);
}

Ranked BatchQueues::head_of(KeyIndex key) const {
  const Ranked& head = *keys_[key]->members.begin();
  return {head.rank, head.sequence, key};
}

}  // namespace baton::policy
