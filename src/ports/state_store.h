#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "domain/latency_curve.h"

namespace baton::ports {

// Names one curve: a model version's file on one device kind under one set of runtime options.
struct CurveKey {
  std::string model;
  int64_t version = 0;
  std::string fingerprint;  // of file, device kind and options: a changed model starts afresh
};

struct StoreFailure {
  std::string message;
};

// State that survives a restart. Blocks; never called on a worker or an instance thread.
class StateStore {
 public:
  virtual ~StateStore() = default;
  // Nothing: none is known. Error: the state cannot be read, or holds what is no curve.
  virtual Result<std::optional<LatencyCurve>, StoreFailure> load_curve(const CurveKey& key) = 0;
  virtual Result<void, StoreFailure> save_curve(const CurveKey& key, const LatencyCurve& curve) = 0;
};

}  // namespace baton::ports
