#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"

namespace baton::adapters::log {

// Traces as a JSON array in a file, from a thread of its own: after each write the file is a whole
// array. What stands in it already stays. Any thread writes.
class TraceFile {
 public:
  static constexpr size_t kMostTraces = 16'384;  // queued; more are dropped and counted

  // Error: the file cannot be opened, or holds something that no TraceFile wrote.
  [[nodiscard]] static Result<std::unique_ptr<TraceFile>, std::string> open(
      const std::string& path);
  // Writes what is queued.
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  void write(std::string_view trace);
  // So many traces in one file from the next one on: PATH.0, PATH.1 and so on, the first that do
  // not exist; 0: in PATH.
  void set_frequency(uint64_t traces) { frequency_ = traces; }
  // Traces for which there was no room, and those that the file did not take.
  [[nodiscard]] uint64_t dropped() const;

 private:
  explicit TraceFile(std::string path) : path_(std::move(path)) {}
  void run();
  uint64_t write_all(const std::vector<std::string>& traces);
  // The file that the next trace goes to, with room for `room` more. False: it cannot be opened.
  bool choose_file(uint64_t& room);
  bool append(std::string_view traces);
  void close_numbered();

  const std::string path_;
  std::atomic<uint64_t> frequency_{0};
  mutable std::mutex mutex_;
  std::condition_variable woken_;
  std::vector<std::string> queued_;
  uint64_t dropped_ = 0;
  bool stop_ = false;

  // An array in a file, to which more is appended in place of its end.
  struct Array {
    int descriptor = -1;
    uint64_t end = 0;     // of its last trace
    uint64_t traces = 0;  // written by this process
    bool empty = true;
  };
  // Of the writing thread.
  Array plain_;
  Array numbered_;
  Array* current_ = nullptr;
  uint64_t numbered_for_ = 0;  // the frequency that numbered_ is filled by
  uint64_t next_number_ = 0;
  std::thread thread_;
};

}  // namespace baton::adapters::log
