#include "app/signals.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>
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

}  // namespace

void block_signals(std::initializer_list<int> numbers) {
  const sigset_t set = set_of(numbers);
  BATON_CHECK(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
}

SignalWatch::SignalWatch(std::initializer_list<int> numbers, std::function<void(int)> handle) {
  const sigset_t set = set_of(numbers);
  signal_descriptor_ = signalfd(-1, &set, SFD_CLOEXEC);
  stop_descriptor_ = eventfd(0, EFD_CLOEXEC);
  BATON_CHECK(signal_descriptor_ >= 0 && stop_descriptor_ >= 0);
  thread_ = std::thread([this, handle = std::move(handle)] {
    std::array<pollfd, 2> watched = {
        {{signal_descriptor_, POLLIN, 0}, {stop_descriptor_, POLLIN, 0}}};
    for (;;) {
      poll(watched.data(), watched.size(), -1);
      if (watched[1].revents != 0) return;
      signalfd_siginfo info{};
      if (read(signal_descriptor_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        handle(static_cast<int>(info.ssi_signo));
      }
    }
  });
}

SignalWatch::~SignalWatch() {
  const uint64_t one = 1;
  BATON_CHECK(write(stop_descriptor_, &one, sizeof one) == static_cast<ssize_t>(sizeof one));
  thread_.join();
  close(stop_descriptor_);
  close(signal_descriptor_);
}

}  // namespace baton::app
