#include "adapters/grpc/write_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace baton::adapters::grpc_api {

void WriteWatch::watch(WatchedWrite& write, size_t bytes) {
  const Instant now = clock_.now();
  {
    const std::lock_guard lock(mutex_);
    if (write.sent_) return;
    write.late_ = now + stall_ * (static_cast<int64_t>(bytes >> 20) + 1);
    write.watched_ = true;
    write.after_ = std::exchange(first_, &write);
    if (write.after_ != nullptr) write.after_->before_ = &write;
  }
  if (!armed_) arm(now + stall_);
}

void WriteWatch::sent(WatchedWrite& write) {
  const std::lock_guard lock(mutex_);
  write.sent_ = true;
  if (write.watched_) unlink(write);
}

void WriteWatch::unlink(WatchedWrite& write) {
  (write.before_ == nullptr ? first_ : write.before_->after_) = write.after_;
  if (write.after_ != nullptr) write.after_->before_ = write.before_;
  write.before_ = write.after_ = nullptr;
  write.watched_ = false;
}

void WriteWatch::arm(Instant when) {
  armed_ = true;
  timers_.arm(when, [watch = weak_from_this()] {
    if (const auto self = watch.lock()) self->sweep();
  });
}

void WriteWatch::sweep() {
  armed_ = false;
  const Instant now = clock_.now();
  std::vector<std::shared_ptr<WatchedWrite>> late;
  Instant next = Instant::never();
  {
    const std::lock_guard lock(mutex_);
    for (WatchedWrite* write = first_; write != nullptr;) {
      WatchedWrite& each = *std::exchange(write, write->after_);
      if (each.late_ > now) {
        next = std::min(next, each.late_);
        continue;
      }
      late.push_back(each.keep());
      unlink(each);
    }
  }
  if (stalls_ != nullptr) stalls_->fetch_add(late.size(), std::memory_order_relaxed);
  for (const auto& write : late) write->cut_off();
  // One that begins meanwhile is not late before now + stall.
  if (!next.is_never()) arm(std::clamp(next, now + stall_ / 4, now + stall_));
}

}  // namespace baton::adapters::grpc_api
