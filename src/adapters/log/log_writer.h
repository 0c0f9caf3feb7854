#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "ports/clock.h"
#include "ports/log_control.h"
#include "ports/log_sink.h"

namespace baton::adapters::log {

// Appends lines to a descriptor from a thread of its own. Any thread writes. Lines wait for up to
// kGathered, so that a busy server wakes the thread a few hundred times a second, not for each.
class LogWriter final : public ports::LogSink {
 public:
  static constexpr size_t kMostLines = 65'536;
  static constexpr size_t kMostBytes = 64 << 20;  // of queued lines
  static constexpr std::chrono::milliseconds kGathered{5};

  // Takes the descriptor over when `owned`.
  LogWriter(int descriptor, bool owned);
  // Writes what is queued; gives up when the descriptor takes nothing for a second.
  ~LogWriter() override;
  void write(std::string_view line) override;
  // Lines for which there was no room, and those that the descriptor did not take.
  [[nodiscard]] uint64_t dropped() const;
  // What is written from now on goes to the file of this path, which may have been moved away
  // meanwhile; pipes and devices go on as they are. False: it cannot be opened, nothing changes.
  [[nodiscard]] bool reopen(const std::string& path) const;

 private:
  void run();
  // Returns how many lines were lost; `refused`, how many found no room until now.
  uint64_t write_lines(std::string& lines, uint64_t refused);
  // Returns how much was written.
  size_t write_all(std::string_view text);
  [[nodiscard]] bool wait_writable();

  const int descriptor_;
  const bool owned_;
  mutable std::mutex mutex_;
  std::condition_variable woken_;
  std::string queued_;    // lines with their line feeds
  size_t lines_ = 0;      // in queued_
  uint64_t refused_ = 0;  // lines without room
  uint64_t lost_ = 0;     // lines that the descriptor did not take
  std::atomic<bool> stop_{false};
  // Of the writing thread.
  bool torn_ = false;          // the last line written has no line feed
  uint64_t told_refused_ = 0;  // what is written of the counts
  uint64_t untold_lost_ = 0;
  bool regular_ = false;  // a file: never makes its writer wait for a reader
  std::thread thread_;
};

// Opens a file for appending; "-" is standard output. Null when it cannot be opened.
[[nodiscard]] std::unique_ptr<LogWriter> open_log(const std::string& path);

// Lines of this level and above.
[[nodiscard]] LogSettings settings_from(ports::LogLevel least);

// The application log as lines for people: time, level, message.
class TextLog final : public ports::Log, public ports::LogControl {
 public:
  TextLog(ports::LogSink& sink, const ports::Clock& clock, ports::LogLevel least);
  void log(ports::LogLevel level, std::string message) override;
  [[nodiscard]] LogSettings settings() const override;
  void apply(const LogSettings& settings) override;

 private:
  ports::LogSink& sink_;
  const ports::Clock& clock_;
  std::atomic<uint64_t> settings_;  // a bit a level below kVerboseShift, the verbose level above
};

}  // namespace baton::adapters::log
