#pragma once

#include <string>
#include <vector>

#include "domain/end_reason.h"
#include "domain/request.h"
#include "ports/clock.h"
#include "ports/engine.h"
#include "ports/log_sink.h"

namespace baton::service {

struct AccessRecord {
  const RequestContext* context = nullptr;
  std::string_view model;
  int64_t version = 0;  // 0: none was resolved
  uint64_t items = 0;
  const SequenceStep* sequence = nullptr;  // null, or not given: the request stands alone
  EndReason reason = EndReason::kOk;
  std::string_view message;  // of a refusal; empty otherwise
  ports::CallTimings timings;
  Instant ended;
};

// Writes access records of one worker. Not thread-safe: one a worker.
class AccessLog {
 public:
  // A null sink turns the log off.
  AccessLog(const ports::Clock& clock, ports::LogSink* sink) : clock_(clock), sink_(sink) {}
  void write(const AccessRecord& record);

 private:
  const ports::Clock& clock_;
  ports::LogSink* sink_;
  int64_t cached_second_ = -1;
  std::string cached_text_;  // "2026-01-31T12:00:00" of the cached second
  std::vector<char> line_;   // the memory that lines are built in
  std::string escaped_;      // the memory that names are escaped in
};

}  // namespace baton::service
