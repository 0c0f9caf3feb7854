#pragma once
// What a model is: its signature as the file says, and its configuration as the operator says,
// validated.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "domain/execution_provider.h"
#include "domain/sequence.h"
#include "domain/tensor.h"

namespace baton {

// Where a model version stands. The same words as a replica's states on the architecture page.
enum class ModelState : uint8_t {
  kPending,
  kLoading,
  kWarming,
  kReady,
  kDraining,
  kStopping,
  kGone,
  kFailed
};
[[nodiscard]] std::string_view model_state_name(ModelState state);

// What the elements of an output's rows are called, by index.
struct LabelList {
  std::vector<std::string> lines;
  size_t longest = 0;  // bytes
};

// How a client lays out the pictures that an input takes; the server makes no use of it.
enum class PictureFormat : uint8_t { kNone, kNhwc, kNchw };

struct TensorSpec {
  std::string name{};
  DataType type = DataType::kFp32;
  Shape dims{};  // -1: any. Without the batch dimension when the model batches
  std::optional<Shape>
      reshape{};  // what the runtime expects in place of dims (batch dimension aside)
  bool optional = false;
  PictureFormat format = PictureFormat::kNone;  // of an input
  std::string label_file{};                   // of an output: below the model's folder; empty: none
  std::shared_ptr<const LabelList> labels{};  // of that file
  bool operator==(const TensorSpec&) const = default;
};

// A tensor's shape as the runtime expects it for a shape that a client sent, and the way back for
// outputs: `reshape` in place of `dims`, each -1 taking the dimension that was -1 on the other
// side, in order. The shape itself without a reshape, or when the counts of elements differ.
[[nodiscard]] Shape runtime_shape(const TensorSpec& spec, const Shape& client, bool batches);
[[nodiscard]] Shape client_shape(const TensorSpec& spec, const Shape& runtime, bool batches);

// Inputs and outputs as the model file declares them, batch dimension included.
struct ModelSignature {
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  // The file may hold control flow (Loop, Scan, If): a run's time may depend on values.
  bool control_flow = false;
};

// What becomes of a request that has waited for its queue's timeout.
enum class TimeoutAction : uint8_t {
  kReject,
  kDelay,  // goes behind all of its level that wait then, once
};

struct QueuePolicy {
  Duration timeout;             // longest time in the queue; zero: none
  bool allow_override = false;  // in configurations only: a request's own timeout always holds
  uint64_t max_queue_size = 0;  // requests of one level; zero: the server's default
  TimeoutAction timeout_action = TimeoutAction::kReject;
  bool operator==(const QueuePolicy&) const = default;
};

struct BatchingConfig {
  bool enabled = false;
  std::vector<uint32_t> preferred_sizes;  // ascending
  Duration max_delay;
  bool preserve_ordering = false;  // answers leave in the order in which requests came
  uint32_t priority_levels = 0;    // 0: one level
  uint32_t default_priority_level = 0;
  QueuePolicy default_policy;
  std::map<uint32_t, QueuePolicy> level_policies;
  bool operator==(const BatchingConfig&) const = default;
};

// Limits that hold whatever the model's own configuration says.
struct QueueLimits {
  uint64_t max_items = 8192;
  uint64_t max_bytes = 512ULL << 20;
};

struct VersionPolicy {
  enum class Kind : uint8_t { kLatest, kAll, kSpecific };
  Kind kind = Kind::kLatest;
  uint32_t latest_count = 1;
  std::vector<int64_t> specific;
  bool operator==(const VersionPolicy&) const = default;
};

struct WarmupInput {
  enum class Source : uint8_t { kZero, kRandom, kFile };
  DataType type = DataType::kFp32;
  Shape dims{};
  Source source = Source::kZero;
  std::string file{};  // below the model's warmup/ folder
  bool operator==(const WarmupInput&) const = default;
};

struct WarmupSample {
  std::string name{};
  uint32_t batch_size = 1;
  uint32_t count = 1;
  std::map<std::string, WarmupInput> inputs{};
  bool operator==(const WarmupSample&) const = default;
};

// ONNX Runtime session options that a configuration may set. Absent: baton's default.
struct RuntimeOptions {
  int intra_op_threads = 1;
  int inter_op_threads = 1;
  bool parallel_execution = false;
  bool memory_arena = true;
  bool memory_pattern = true;
  int graph_level = 0;  // Triton's scale: 0 all, -1 basic, 1 extended, 2 off
  // Asked in this order to take nodes; the CPU takes the rest.
  std::vector<ExecutionProvider> providers{};
  bool operator==(const RuntimeOptions&) const = default;
};

struct ModelConfig {
  std::string name;
  uint32_t max_batch_size = 0;  // 0: the model does not batch and dims are its full shapes
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  VersionPolicy version_policy;
  uint32_t instance_count = 1;
  BatchingConfig batching;
  // Of floating-point outputs, between a batch and single runs, where it is more than their type's:
  // |a - b| <= it * (1 + max(|a|, |b|)).
  double batch_tolerance = 0;
  std::optional<SequenceConfig> sequences;  // absent: requests stand alone
  std::vector<WarmupSample> warmups;
  RuntimeOptions runtime;
  std::string default_file = "model.onnx";
  std::string json;  // the configuration in the protocol's JSON, as the config route returns it
  std::string serialized;  // the same as a serialized inference.ModelConfig
  [[nodiscard]] bool batches() const { return max_batch_size > 0; }
  bool operator==(const ModelConfig&) const = default;
};

// Why a model did not load; the sentence names the tensor, what was found and what was expected.
// `message` is safe to show to a client; `detail` may name paths and is for the log and the
// operator's commands.
struct LoadFailure {
  std::string message{};
  std::string detail{};
};

}  // namespace baton
