#pragma once

#include <signal.h>

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

// Signals without a meaning: each is handed to `tell`, on the watch's thread.
struct IgnoredSignals {
  std::initializer_list<int> numbers;
  std::function<void(int)> tell;
};

// Waits for blocked signals on a thread of its own. The first is handed to `begin`, on that thread;
// a second one ends the process at once, and so does the end of `bound` after the first, whatever
// the other threads do. Signals to be ignored are not even told of from the first on.
class EndWatch {
 public:
  EndWatch(std::initializer_list<int> numbers, std::chrono::milliseconds bound,
           std::function<void(int)> begin, IgnoredSignals ignored);
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
  sigset_t ends_;
  std::function<void(int)> tell_ignored_;
  std::thread thread_;
};

}  // namespace baton::app
