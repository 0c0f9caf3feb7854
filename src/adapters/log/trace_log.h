#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "adapters/log/trace_file.h"
#include "ports/trace_control.h"

namespace baton::adapters::log {

// Trace settings while serving, and the file that traces go to. While nothing is traced, asking
// costs a load; else a short lock.
class TraceLog final : public ports::TraceControl {
 public:
  TraceLog(std::string path, std::unique_ptr<TraceFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}

  [[nodiscard]] std::string file() const override { return path_; }
  [[nodiscard]] TraceSettings settings(const std::string& model) const override;
  [[nodiscard]] TraceOverrides overrides(const std::string& model) const override;
  void apply(const std::string& model, const TraceOverrides& overrides) override;
  [[nodiscard]] bool sample(const std::string& model) override;
  void write(std::string_view trace) override { file_->write(trace); }

  [[nodiscard]] uint64_t dropped() const { return file_->dropped(); }

 private:
  struct Said {
    TraceOverrides overrides;
    int64_t left = 0;  // of overrides.count, where that is there
  };
  // Under the lock.
  [[nodiscard]] TraceSettings settings_of(const std::string& model) const;
  int64_t* left_for(const std::string& model);

  const std::string path_;
  const std::unique_ptr<TraceFile> file_;
  std::atomic<bool> on_{false};  // for some model
  mutable std::mutex mutex_;
  Said global_;
  std::map<std::string, Said> models_;    // of which something was said
  std::map<std::string, uint64_t> seen_;  // requests, by model, while tracing was on
};

}  // namespace baton::adapters::log
