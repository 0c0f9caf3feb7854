#pragma once

#include <functional>
#include <initializer_list>
#include <thread>

namespace baton::app {

// Blocks signals in the calling thread and those that it starts later: before any thread is
// started.
void block_signals(std::initializer_list<int> numbers);

// Waits for blocked signals on a thread of its own and hands each to `handle`, until it is
// destroyed.
class SignalWatch {
 public:
  SignalWatch(std::initializer_list<int> numbers, std::function<void(int)> handle);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  int signal_descriptor_;
  int stop_descriptor_;
  std::thread thread_;
};

}  // namespace baton::app
