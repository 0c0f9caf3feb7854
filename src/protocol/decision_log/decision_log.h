#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "domain/decision.h"
#include "domain/decision_setup.h"
#include "protocol/json/reader.h"

namespace baton::protocol::decision_log {

// Lines of one service, without their line feeds.
class LineWriter {
 public:
  // `load` counts a version's engines, from 1: each decides on its own.
  static LineWriter of_model(std::string_view model, int64_t version, uint64_t load = 1);
  static LineWriter of_worker(uint64_t worker);

  [[nodiscard]] std::string setup(const DispatcherSetup& setup) const;
  [[nodiscard]] std::string setup(const AdmissionSetup& setup) const;
  [[nodiscard]] std::string input(const DecisionInput& input) const;
  [[nodiscard]] std::string decision(const Decision& decision) const;
  [[nodiscard]] std::string missed(uint64_t records) const;

 private:
  explicit LineWriter(std::string head) : head_(std::move(head)) {}
  std::string head_;  // {"model":…,"version":…
};

struct LogLine {
  enum class Kind : uint8_t {
    kSetup,
    kInput,
    kDecision,
    kMissed,  // of one service
    kDropped  // of any, by the file's writer
  };
  Kind kind = Kind::kDecision;
  bool of_worker = false;
  std::string model{};  // empty for a worker's
  int64_t version = 0;
  uint64_t load = 1;
  uint64_t worker = 0;
  std::variant<DispatcherSetup, AdmissionSetup> setup{};  // kSetup
  DecisionInput input{};                                  // kInput
  uint64_t sequence = 0;                                  // kDecision
  uint64_t entry = 0;                                     // kDecision
  uint64_t count = 0;                                     // kMissed, kDropped
};

class LineParser {
 public:
  // Error: what is wrong with the line.
  [[nodiscard]] Result<LogLine, std::string> parse(std::string_view text);

 private:
  json::JsonParser parser_;
};

// docs/decision-log.md.
[[nodiscard]] std::string decision_log_reference();

}  // namespace baton::protocol::decision_log
