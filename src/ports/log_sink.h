#pragma once

#include <string>
#include <string_view>

namespace baton::ports {

// Takes finished log lines. Any thread; never blocks: when its queue is full the newest line is
// dropped and counted.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void write(std::string_view line) = 0;  // without the line feed
};

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// The application log: what happened and why, never a payload. Any thread; never blocks.
class Log {
 public:
  virtual ~Log() = default;
  virtual void log(LogLevel level, std::string message) = 0;
};

}  // namespace baton::ports
