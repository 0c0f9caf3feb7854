#include "adapters/instances/hand_over.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace baton::adapters {
namespace {

constexpr size_t kExchanges = 64;

// A ball between two threads, each of which sleeps while the other has it.
class Exchange {
 public:
  // Gives the ball to `side` and waits until it is not there any more.
  void serve(int side) {
    std::unique_lock lock(mutex_);
    side_ = side;
    changed_.notify_all();
    changed_.wait(lock, [&] { return side_ != side; });
  }
  // Gives back what comes to `side` until the ball leaves the game.
  void answer(int side) {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return side_ == side || side_ == kOut; });
      if (side_ == kOut) return;
      side_ = kNobody;
      changed_.notify_all();
    }
  }
  void end() {
    const std::lock_guard lock(mutex_);
    side_ = kOut;
    changed_.notify_all();
  }

 private:
  static constexpr int kNobody = -1;
  static constexpr int kOut = -2;
  std::mutex mutex_;
  std::condition_variable changed_;
  int side_ = kNobody;
};

}  // namespace

Duration measure_hand_over(const ports::Clock& clock) {
  Exchange exchange;
  std::thread other([&] { exchange.answer(1); });
  std::array<Duration, kExchanges> spent{};
  for (Duration& one : spent) {
    const Instant begin = clock.now();
    exchange.serve(1);
    one = clock.now() - begin;
  }
  exchange.end();
  other.join();
  std::ranges::nth_element(spent, spent.begin() + kExchanges / 4);
  return std::clamp(spent[kExchanges / 4], Duration::us(20), Duration::us(100));
}

}  // namespace baton::adapters
