#pragma once
// A server in a process of its own: this program, executed again, so that it shares neither memory
// nor addresses (and what the processor learns by address) with the client that measures.

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "support/figures.h"

namespace bench {

inline constexpr const char* kServeArgument = "--serve-to";  // and the number of a pipe's end

// First in main(): in the child, `serve(announce)` calls announce(port) and does not return.
template <class Serve>
void serve_if_child(int argc, char** argv, Serve serve) {
  if (argc != 3 || std::strcmp(argv[1], kServeArgument) != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int pipe_end = std::atoi(argv[2]);
  serve([&](uint16_t port) { return write(pipe_end, &port, sizeof port) == sizeof port; });
  std::exit(0);
}

class ServingChild {
 public:
  ServingChild() {
    int ends[2];
    if (pipe(ends) != 0) die("no pipe can be made");
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    pid_ = fork();
    if (pid_ == 0) {
      const std::string end = std::to_string(ends[1]);
      execl("/proc/self/exe", "echo", kServeArgument, end.c_str(), nullptr);
      _exit(127);
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

// Binds this process, and those that it starts from now on, to the first CPU that it may use. Where
// the kernel happens to place a client and its server decides between latencies that are a factor
// of four apart; on one CPU what is compared is the work done.
inline void stay_on_one_cpu() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  sched_setaffinity(0, sizeof one, &one);
}

}  // namespace bench
