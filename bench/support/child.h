#pragma once
// A server in a child process of its own, so that it shares nothing with the client that measures.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

#include "support/figures.h"

namespace bench {

// Forks; in the child `serve(announce)` calls announce(port) and does not return. Before anything
// in this process has started a thread.
class ServingChild {
 public:
  template <class Serve>
  explicit ServingChild(Serve serve) {
    int ends[2];
    if (pipe(ends) != 0) die("no pipe can be made");
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      serve([&](uint16_t port) { return write(ends[1], &port, sizeof port) == sizeof port; });
      _exit(0);
    }
    close(ends[1]);
    if (read(ends[0], &port_, sizeof port_) != sizeof port_) die("the echo server did not start");
    close(ends[0]);
  }
  ~ServingChild() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  ServingChild(const ServingChild&) = delete;
  ServingChild& operator=(const ServingChild&) = delete;
  [[nodiscard]] uint16_t port() const { return port_; }

 private:
  pid_t pid_ = -1;
  uint16_t port_ = 0;
};

}  // namespace bench
