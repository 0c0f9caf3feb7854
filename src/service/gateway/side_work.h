#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "ports/executor.h"
#include "ports/job_runner.h"

namespace baton::service {

// Work that would hold a worker's loop for long, such as reading megabytes of JSON: done by a job,
// with its end back on the loop. What bounds the number of jobs is the caller's.
class SideWork {
 public:
  // Owns the work until it begins, then what follows it: giving up frees at once what they hold.
  using Ticket = std::shared_ptr<const void>;

  // Both outlive the work. Null jobs: none is offered.
  SideWork(ports::Executor& loop, ports::JobRunner* jobs) : loop_(loop), jobs_(jobs) {}
  [[nodiscard]] bool offered() const { return jobs_ != nullptr; }

  // `work` runs once on a job's thread, `done` gets its result on the loop. When the ticket is
  // given up before, work that has not begun is left out, and done() is not called.
  template <class Work, class Done>
  [[nodiscard]] Ticket start(Work work, Done done) {
    using State = Wanted<Work, Done>;
    auto state = std::make_shared<State>(std::move(work), std::move(done));
    jobs_->run([loop = &loop_, wanted = std::weak_ptr<State>(state)](ports::Cancellation&) {
      auto begun = wanted.lock();
      if (!begun) return;
      std::optional<Work> mine(std::move(begun->work));
      begun->work.reset();
      begun.reset();
      auto result = (*mine)();
      mine.reset();
      loop->post([wanted, result = std::move(result)]() mutable {
        if (const auto still = wanted.lock()) still->done(std::move(result));
      });
    });
    return state;
  }

 private:
  template <class Work, class Done>
  struct Wanted {
    Wanted(Work work, Done done) : work(std::move(work)), done(std::move(done)) {}
    std::optional<Work> work;  // nothing once it has begun
    Done done;
  };

  ports::Executor& loop_;
  ports::JobRunner* jobs_;
};

}  // namespace baton::service
