#pragma once

#include <memory>
#include <utility>

#include "ports/executor.h"
#include "ports/job_runner.h"

namespace baton::service {

// Work that would hold a worker's loop for long, such as reading megabytes of JSON: done by a job,
// with its end back on the loop. What bounds the number of jobs is the caller's.
class SideWork {
 public:
  // Whoever holds it still wants the result.
  using Ticket = std::shared_ptr<const bool>;

  // Both outlive the work. Null jobs: none is offered.
  SideWork(ports::Executor& loop, ports::JobRunner* jobs) : loop_(loop), jobs_(jobs) {}
  [[nodiscard]] bool offered() const { return jobs_ != nullptr; }

  // `work` runs once on a job's thread, `done` gets its result on the loop. When the ticket is
  // given up before, work that has not begun is left out, and done() is not called.
  template <class Work, class Done>
  [[nodiscard]] Ticket start(Work work, Done done) {
    auto ticket = std::make_shared<const bool>(true);
    jobs_->run([loop = &loop_, wanted = std::weak_ptr<const bool>(ticket), work = std::move(work),
                done = std::move(done)](ports::Cancellation&) mutable {
      if (wanted.expired()) return;
      loop->post([wanted, result = work(), done = std::move(done)]() mutable {
        if (!wanted.expired()) done(std::move(result));
      });
    });
    return ticket;
  }

 private:
  ports::Executor& loop_;
  ports::JobRunner* jobs_;
};

}  // namespace baton::service
