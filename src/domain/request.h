#pragma once
// A request as every protocol delivers it, and its result.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "domain/forwarded_headers.h"
#include "domain/sequence.h"
#include "domain/tensor.h"

namespace baton {

// Numbered by the process in order of arrival.
using RequestId = Id<struct RequestTag>;

// How urgently: operators may define more later; these three always exist.
enum class TrafficClass : uint8_t { kInteractive, kBatch, kExperimental };
[[nodiscard]] std::string_view traffic_class_name(TrafficClass traffic_class);
[[nodiscard]] std::optional<TrafficClass> parse_traffic_class(std::string_view name);

// W3C trace context; all zero when the client sent none.
struct TraceContext {
  std::array<uint8_t, 16> trace_id{};
  std::array<uint8_t, 8> parent_id{};
  uint8_t flags = 0;
  [[nodiscard]] bool present() const { return trace_id != std::array<uint8_t, 16>{}; }
};

// Which front end brought the request.
enum class Protocol : uint8_t { kHttp, kGrpc, kInternal };
[[nodiscard]] std::string_view protocol_name(Protocol protocol);

struct RequestContext {
  RequestId id;
  std::string client_id;  // what the client calls it; echoed in the answer; may be empty
  std::string tenant = "default";
  TrafficClass traffic_class = TrafficClass::kInteractive;
  Protocol protocol = Protocol::kInternal;
  Instant arrival;
  Instant deadline = Instant::never();  // end to end: kept in every stage
  uint32_t priority = 0;                // 0: the model's default level; 1 is the most urgent
  Duration predicted_cost;              // device time by the performance model; zero when unknown
  TraceContext trace;
  // Of the client's headers those that the operator wants kept; null: none.
  std::shared_ptr<const ForwardedHeaders> headers;
  uint64_t bytes = 0;  // of the request body, or of what it became in memory
};

// Longest id and tensor name, in bytes: they are copied into answers and logs.
inline constexpr size_t kMostNameBytes = 1024;

struct RequestedOutput {
  std::string name;
  bool binary = false;                         // HTTP: raw bytes behind the JSON
  uint32_t classification = 0;                 // 0: the tensor itself
  std::shared_ptr<const MemoryPlace> place{};  // where it is to be written; null: into the answer
};

struct InferRequest {
  RequestContext context{};
  std::string model{};
  std::optional<int64_t> version{};        // absent: the highest ready version
  std::vector<Tensor> inputs{};            // in the order that the client sent
  std::vector<RequestedOutput> outputs{};  // empty: all of the model's
  SequenceStep sequence{};
  bool binary_outputs_by_default = false;
  uint64_t items = 1;      // rows along the batch dimension; 1 for a model that does not batch
  uint64_t batch_key = 0;  // hash of everything that must be equal within a batch
  std::vector<Storage> storage{};
};

struct InferResult {
  std::vector<Tensor> outputs;
  std::vector<Storage> storage;
};

// True when both may share a batch: the same input names and types in the same order, and the same
// shapes but for the first dimension when `batched`. The check behind equal batch keys, which are
// only hashes.
[[nodiscard]] bool same_layout(const InferRequest& a, const InferRequest& b, bool batched);
[[nodiscard]] uint64_t layout_hash(const InferRequest& request, bool batched);

}  // namespace baton
