#pragma once
// Feeds a decision log, live or simulated, to the services that wrote it and compares what they
// decide.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/decision_log/decision_log.h"

namespace baton::sim {

struct ReplayDifference {
  uint64_t line = 0;     // of the file, from 1
  std::string recorded;  // empty: nothing was recorded where replay decides
  std::string replayed;  // empty: replay decides nothing where a decision was recorded
};

struct ReplayResult {
  struct Part {
    std::string name;  // "model/version" or "worker N"
    uint64_t inputs = 0;
    uint64_t decisions = 0;  // compared and equal
    std::string gap;         // not empty: why what follows was not replayed
  };
  std::vector<Part> parts;                       // by name
  std::unique_ptr<ReplayDifference> difference;  // the first
  [[nodiscard]] bool complete() const;
  [[nodiscard]] uint64_t decisions() const;
};

class Replay {
 public:
  Replay();
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // The next line of the log. False: it differs, and nothing more is to be read. Error: the line is
  // none of a decision log.
  Result<bool, std::string> feed(std::string_view text);
  // After the last line.
  [[nodiscard]] ReplayResult finish();

 private:
  class Part;
  Part& part_of(const protocol::decision_log::LogLine& line);

  protocol::decision_log::LineParser parser_;
  std::map<std::string, std::unique_ptr<Part>> parts_;
  std::unique_ptr<ReplayDifference> difference_;
  uint64_t line_ = 0;
};

[[nodiscard]] std::string render_text(const ReplayResult& result);
[[nodiscard]] std::string render_json(const ReplayResult& result);

}  // namespace baton::sim
