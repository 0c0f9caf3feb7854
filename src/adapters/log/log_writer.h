#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ports/clock.h"
#include "ports/log_sink.h"

namespace baton::adapters::log {

// Appends lines to a descriptor from a thread of its own. Any thread writes.
class LogWriter final : public ports::LogSink {
 public:
  static constexpr size_t kMostLines = 65'536;
  static constexpr size_t kMostBytes = 64 << 20;  // of queued lines

  // Takes the descriptor over when `owned`.
  LogWriter(int descriptor, bool owned);
  // Writes what is queued; gives up when the descriptor takes nothing for a second.
  ~LogWriter() override;
  void write(std::string line) override;
  [[nodiscard]] uint64_t dropped() const;

 private:
  void run();
  void write_all(const std::vector<std::string>& lines);
  [[nodiscard]] bool wait_writable();

  const int descriptor_;
  const bool owned_;
  mutable std::mutex mutex_;
  std::condition_variable woken_;
  std::vector<std::string> lines_;
  size_t bytes_ = 0;  // of lines_
  uint64_t dropped_ = 0;
  bool sleeping_ = false;
  std::atomic<bool> stop_{false};
  bool regular_ = false;  // a file: never makes its writer wait for a reader
  std::thread thread_;
};

// Opens a file for appending; "-" is standard output. Null when it cannot be opened.
[[nodiscard]] std::unique_ptr<LogWriter> open_log(const std::string& path);

// The application log as lines for people: time, level, message.
class TextLog final : public ports::Log {
 public:
  TextLog(ports::LogSink& sink, const ports::Clock& clock, ports::LogLevel least)
      : sink_(sink), clock_(clock), least_(least) {}
  void log(ports::LogLevel level, std::string message) override;

 private:
  ports::LogSink& sink_;
  const ports::Clock& clock_;
  const ports::LogLevel least_;
};

}  // namespace baton::adapters::log
