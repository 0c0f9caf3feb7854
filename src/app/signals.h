#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <thread>

namespace baton::app {

// Blocks signals in the calling thread and those that it starts later: before any thread is
// started.
void block_signals(std::initializer_list<int> numbers);

// The exit status of a process whose orderly end took longer than it may; a second signal gives 128
// plus its number.
inline constexpr int kEndedLate = 3;

// Waits for blocked signals on a thread of its own. The first is handed to `begin`, on that thread;
// a second one ends the process at once, and so does the end of `bound` after the first, whatever
// the other threads do.
class EndWatch {
 public:
  EndWatch(std::initializer_list<int> numbers, std::chrono::milliseconds bound,
           std::function<void(int)> begin);
  ~EndWatch();
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

 private:
  void watch();
  // The number of a signal; 0: nothing came within the time, or the watch is to end.
  [[nodiscard]] int wait(int timeout_ms, bool& stop) const;

  int signal_descriptor_;
  int stop_descriptor_;
  int bound_ms_;
  std::function<void(int)> begin_;
  std::thread thread_;
};

}  // namespace baton::app
