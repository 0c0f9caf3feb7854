#pragma once
// What is said of a run that failed. For the files of this room only.

#include <mutex>
#include <string>
#include <string_view>

#include "base/time.h"
#include "ports/clock.h"
#include "ports/log_sink.h"

namespace baton::adapters::onnx {

// ONNX Runtime's words for the client whose request it was: they may hold its values. Without the
// library's own file names, at most 300 bytes.
[[nodiscard]] std::string text_for_client(std::string_view cause);
// Where it failed, for the log: no values, at most 200 bytes.
[[nodiscard]] std::string place_for_log(std::string_view cause);

// Writes of one model's failed runs, a few lines a second; what is left out is counted in the next.
// Any thread.
class FailureLog {
 public:
  static constexpr int kLinesPerSecond = 5;

  FailureLog(ports::Log& log, const ports::Clock& clock) : log_(log), clock_(clock) {}
  void write(const std::string& model, std::string_view cause);

 private:
  ports::Log& log_;
  const ports::Clock& clock_;
  std::mutex mutex_;
  Instant second_;  // when the current one began
  int lines_ = 0;   // in it
  uint64_t left_out_ = 0;
};

}  // namespace baton::adapters::onnx
