#pragma once
// Sequences: requests of one client that belong together and run in order, with a state that the
// server keeps from one to the next.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "domain/end_reason.h"
#include "domain/tensor.h"

namespace baton {

struct ModelConfig;

// Longest correlation id in text, in bytes.
inline constexpr size_t kMostCorrelationBytes = 128;
inline constexpr std::string_view kLongCorrelationId = "a sequence_id is longer than 128 bytes";

// What a client calls one of its sequences: a number above 0, or a text.
struct CorrelationId {
  uint64_t number = 0;
  std::string text{};  // where it is not empty, `number` is 0
  [[nodiscard]] bool given() const { return number != 0 || !text.empty(); }
  bool operator==(const CorrelationId&) const = default;
};
// As messages and logs show it: 7, or "abc" in quotes.
[[nodiscard]] std::string correlation_text(const CorrelationId& id);

struct CorrelationHash {
  size_t operator()(const CorrelationId& id) const {
    return id.text.empty() ? std::hash<uint64_t>()(id.number) : std::hash<std::string>()(id.text);
  }
};

// What a request says of its sequence.
struct SequenceStep {
  CorrelationId id{};
  bool start = false;  // begins the sequence, anew if it is there
  bool end = false;    // ends it once this request has been answered
  [[nodiscard]] bool given() const { return id.given() || start || end; }
};

// A tensor that tells the model where in its sequence a request stands: one element a row.
struct SequenceControl {
  enum class Kind : uint8_t { kStart, kReady, kEnd, kCorrelationId };
  Kind kind = Kind::kStart;
  std::string input{};
  DataType type = DataType::kFp32;
  std::string off{};  // the element's bytes for false and for true; empty for kCorrelationId
  std::string on{};
  Shape dims = {1};  // without the batch dimension; {} or {1}, as the model file has it
  bool operator==(const SequenceControl&) const = default;
};

// What a sequence's state is before its first step.
struct FirstState {
  Shape dims{};        // without the batch dimension
  std::string file{};  // below the model's initial_state/; empty: zeros
  bool operator==(const FirstState&) const = default;
};

// A tensor that the model writes for the next step of the same sequence to read.
struct SequenceState {
  std::string input{};
  std::string output{};
  DataType type = DataType::kFp32;
  Shape dims{};  // -1: any. Without the batch dimension
  FirstState first{};
  std::shared_ptr<const std::string> first_bytes{};  // of the tensor; set once the model is loaded
  bool operator==(const SequenceState&) const = default;
};

struct SequenceConfig {
  enum class Strategy : uint8_t {
    kDirect,  // as many sequences at a time as the instances have rows in a batch
    kOldest,  // max_candidates for each instance
  };
  Strategy strategy = Strategy::kDirect;
  uint32_t max_candidates = 0;         // of kOldest
  float minimum_slot_utilization = 0;  // of kDirect: 0 means that batches do not wait
  Duration idle = Duration::s(1);      // without a step for so long, a sequence ends
  std::vector<SequenceControl> controls;
  std::vector<SequenceState> states;
  bool operator==(const SequenceConfig&) const = default;
};

// How many sequences are live at a time, at least 1.
[[nodiscard]] uint32_t live_sequences(const ModelConfig& config);

// The configuration as the runtime sees it: controls and states among the inputs, states among the
// outputs. Without sequences a copy.
[[nodiscard]] ModelConfig with_sequence_tensors(const ModelConfig& config);

// The element of a kCorrelationId control. Error, kInvalid: the id does not fit the type.
[[nodiscard]] Result<std::string, Refusal> correlation_element(const CorrelationId& id,
                                                               const SequenceControl& control);

}  // namespace baton
