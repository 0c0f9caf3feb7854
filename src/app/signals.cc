#include "app/signals.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace baton::app {
namespace {

sigset_t set_of(std::initializer_list<int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (int number : numbers) sigaddset(&set, number);
  return set;
}

// Past every queue and destructor: another thread may hold what they need.
[[noreturn]] void end_process(std::string_view words, int status) {
  static_cast<void>(!write(STDERR_FILENO, words.data(), words.size()));
  _exit(status);
}

int clamp_ms(std::chrono::milliseconds span) {
  constexpr std::chrono::milliseconds kMost(std::numeric_limits<int>::max());
  return static_cast<int>(std::clamp(span, std::chrono::milliseconds(0), kMost).count());
}

}  // namespace

void block_signals(std::initializer_list<int> numbers) {
  const sigset_t set = set_of(numbers);
  BATON_CHECK(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
}

EndWatch::EndWatch(std::initializer_list<int> numbers, std::chrono::milliseconds bound,
                   std::function<void(int)> begin, IgnoredSignals ignored)
    : bound_ms_(clamp_ms(bound)),
      begin_(std::move(begin)),
      ends_(set_of(numbers)),
      tell_ignored_(std::move(ignored.tell)) {
  sigset_t set = ends_;
  for (int number : ignored.numbers) sigaddset(&set, number);
  signal_descriptor_ = signalfd(-1, &set, SFD_CLOEXEC);
  stop_descriptor_ = eventfd(0, EFD_CLOEXEC);
  BATON_CHECK(signal_descriptor_ >= 0 && stop_descriptor_ >= 0);
  thread_ = std::thread([this] { watch(); });
}

int EndWatch::wait(int timeout_ms, bool& stop) const {
  std::array<pollfd, 2> watched = {
      {{signal_descriptor_, POLLIN, 0}, {stop_descriptor_, POLLIN, 0}}};
  poll(watched.data(), watched.size(), timeout_ms);
  stop = watched[1].revents != 0;
  signalfd_siginfo info{};
  if (stop || watched[0].revents == 0) return 0;
  return read(signal_descriptor_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)
             ? static_cast<int>(info.ssi_signo)
             : 0;
}

void EndWatch::watch() {
  bool stop = false;
  int number = 0;
  while (number == 0) {
    number = wait(-1, stop);
    if (stop) return;
    if (number != 0 && sigismember(&ends_, number) == 0) tell_ignored_(std::exchange(number, 0));
  }
  // The others stay blocked, and pending.
  BATON_CHECK(signalfd(signal_descriptor_, &ends_, SFD_CLOEXEC) == signal_descriptor_);
  begin_(number);
  number = wait(bound_ms_, stop);
  if (stop) return;
  if (number == 0) {
    end_process("baton: the time to shut down is over: ended with what was left\n", kEndedLate);
  }
  end_process("baton: a second signal: ended at once\n", 128 + number);
}

EndWatch::~EndWatch() {
  const uint64_t one = 1;
  BATON_CHECK(write(stop_descriptor_, &one, sizeof one) == static_cast<ssize_t>(sizeof one));
  thread_.join();
  close(stop_descriptor_);
  close(signal_descriptor_);
}

}  // namespace baton::app
