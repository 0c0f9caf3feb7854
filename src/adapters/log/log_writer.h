#pragma once

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

  // Takes the descriptor over when `owned`.
  LogWriter(int descriptor, bool owned);
  ~LogWriter() override;  // writes what is queued
  void write(std::string line) override;
  [[nodiscard]] uint64_t dropped() const;

 private:
  void run();
  void write_all(const std::vector<std::string>& lines) const;

  const int descriptor_;
  const bool owned_;
  mutable std::mutex mutex_;
  std::condition_variable woken_;
  std::vector<std::string> lines_;
  uint64_t dropped_ = 0;
  bool sleeping_ = false;
  bool stop_ = false;
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
