#pragma once
// One session and its instances. For the files of this room only.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "adapters/onnx/ort_handles.h"
#include "adapters/onnx/output_pool.h"
#include "adapters/onnx/pool_threads.h"
#include "adapters/onnx/run_failure.h"
#include "ports/clock.h"
#include "ports/log_sink.h"
#include "ports/model_runtime.h"

namespace baton::adapters::onnx {

// What every session of the process shares.
struct OrtShared {
  const OrtApi* api = nullptr;
  OrtOwned<OrtEnv> env;
  OrtOwned<OrtMemoryInfo> cpu;
  ports::Log* log = nullptr;
  const ports::Clock* clock = nullptr;
  std::string version;
  bool cpu_when_missing = false;         // of OrtOptions
  std::unique_ptr<PoolThreads> threads;  // outlives every session
};

class OrtRuntime final : public ports::ModelRuntime {
 public:
  OrtRuntime(std::shared_ptr<const OrtShared> shared, OrtOwned<OrtSession> session,
             ModelSignature signature, std::vector<std::string> remarks);
  [[nodiscard]] const ModelSignature& signature() const override { return signature_; }
  [[nodiscard]] std::vector<std::string> remarks() const override { return remarks_; }
  Result<std::unique_ptr<ports::RuntimeInstance>, LoadFailure> create_instance(
      const ModelConfig& config) override;

  [[nodiscard]] OrtSession* session() const { return session_.get(); }
  [[nodiscard]] const OrtShared& shared() const { return *shared_; }
  [[nodiscard]] FailureLog& failures() { return failures_; }

 private:
  std::shared_ptr<const OrtShared> shared_;
  OrtOwned<OrtSession> session_;
  ModelSignature signature_;
  const std::vector<std::string> remarks_;
  FailureLog failures_;
};

// Reads inputs and outputs of a session. Error: names what is not a tensor of a supported type.
[[nodiscard]] Result<ModelSignature, LoadFailure> read_signature(const OrtApi& api,
                                                                 OrtSession* session);

// One instance: an IoBinding, run options and buffers. What is bound stays bound while the next run
// has the same shapes: small and joined inputs are copied to a buffer of their own, outputs of
// known shape are written to pooled ones. One thread at a time, but terminate().
class OrtInstance final : public ports::RuntimeInstance {
 public:
  OrtInstance(OrtRuntime& runtime, const ModelConfig& config);
  // Empty on success.
  [[nodiscard]] std::string prepare();

  Result<ports::BatchResult, ports::RunFailure> run(
      std::span<const InferRequest* const> members) override;
  void terminate() override;

 private:
  using Members = std::span<const InferRequest* const>;
  using OwnedValue = OrtOwned<OrtValue>;

  struct BoundInput {
    std::string name;
    DataType type = DataType::kFp32;
    Shape shape;
    std::vector<std::byte> buffer;
    OwnedValue value;
    bool in_buffer = false;  // the value is a view of the buffer
  };

  bool bind_inputs(Members members, std::string& error);
  void name_inputs(const InferRequest& first);
  bool bind_input(Members members, size_t index, std::string& error);
  OwnedValue view_of(std::span<const std::byte> data, DataType type, std::string& error);
  OwnedValue make_string_input(Members members, size_t index, const Shape& shape,
                               std::string& error);
  bool bind_outputs(Members members, std::string& error);
  bool bind_pooled_outputs(uint64_t rows, std::string& error);
  bool bind_arena_outputs(std::string& error);
  [[nodiscard]] bool may_be_of_shapes(const std::string& cause) const;
  Result<ports::BatchResult, ports::RunFailure> run_bound(Members members);
  bool execute(std::string& error);
  Result<ports::BatchResult, ports::RunFailure> collect(Members members);
  Result<ports::BatchResult, ports::RunFailure> split(Members members,
                                                      std::span<const Tensor> outputs,
                                                      std::vector<Storage> storage);
  Result<Tensor, ports::RunFailure> read_output(OrtValue* value, const std::string& name,
                                                std::vector<Storage>& storage);
  Result<Tensor, ports::RunFailure> read_strings(OrtValue* value, Tensor tensor, size_t count,
                                                 std::vector<Storage>& storage);
  ports::RunFailure failed(const std::string& cause);

  OrtRuntime& runtime_;
  const OrtApi& api_;
  const std::string model_;
  OrtOwned<OrtIoBinding> binding_;
  OrtOwned<OrtRunOptions> run_options_;
  OrtAllocator* allocator_ = nullptr;  // ONNX Runtime's own, never released
  std::vector<BoundInput> inputs_;
  Shape shape_;                                    // of the input being bound
  std::vector<const TensorSpec*> served_outputs_;  // that the configuration chose
  std::vector<const TensorSpec*> wanted_outputs_;  // of this run
  bool known_shapes_ = false;                      // of all served outputs
  bool shapes_held_ = false;                       // in a run that wrote to pooled buffers
  std::shared_ptr<OutputPool> pool_;
  std::unique_ptr<OutputSet> outputs_;  // of this run; null: from the arena
  uint64_t bound_set_ = 0;              // number of the set that is bound; 0: none
  std::atomic<bool> running_{false};
  std::atomic<bool> terminated_{false};  // the run in progress was told to end
};

}  // namespace baton::adapters::onnx
