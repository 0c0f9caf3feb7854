#include "adapters/onnx/ort_library.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "adapters/onnx/ort_runtime.h"
#include "adapters/onnx/providers.h"

namespace baton::adapters::onnx {
namespace {

void ORT_API_CALL log_from_ort(void* sink, OrtLoggingLevel severity, const char* category,
                               const char* log_id, const char* place, const char* message) {
  static_cast<void>(category);
  static_cast<void>(log_id);
  static_cast<void>(place);
  const auto level =
      severity >= ORT_LOGGING_LEVEL_ERROR ? ports::LogLevel::kError : ports::LogLevel::kWarning;
  static_cast<ports::Log*>(sink)->log(level, std::string("onnxruntime: ") + message);
}

// Triton's graph levels to ONNX Runtime's.
GraphOptimizationLevel graph_level(int level) {
  switch (level) {
    case -1:
      return ORT_ENABLE_BASIC;
    case 1:
      return ORT_ENABLE_EXTENDED;
    case 2:
      return ORT_DISABLE_ALL;
    default:
      return ORT_ENABLE_ALL;
  }
}

// Files above this size are not searched: what they hold is too large to run on a worker anyway.
constexpr std::uintmax_t kMostSearched = 64ULL << 20;

// Looks for the operators' names as a node carries them: field 4, length, name. A chance match
// among the weights costs the model its runs on the worker's thread, nothing else.
bool may_hold_control_flow(const std::string& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  if (error || size > kMostSearched) return true;
  std::ifstream in(file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return std::ranges::any_of(
      std::array<std::string_view, 3>{"\x22\x04Loop", "\x22\x04Scan", "\x22\x02If"},
      [&](std::string_view node) { return bytes.find(node) != std::string::npos; });
}

class OrtLoader final : public ports::RuntimeLoader {
 public:
  explicit OrtLoader(std::shared_ptr<const OrtShared> shared) : shared_(std::move(shared)) {}

  Result<std::unique_ptr<ports::ModelRuntime>, LoadFailure> load(
      const std::string& file, const RuntimeOptions& options) override {
    const OrtApi& api = *shared_->api;
    std::string error;
    auto session_options = ort_make<OrtSessionOptions>(
        api, api.ReleaseSessionOptions,
        [&](OrtSessionOptions** out) { return api.CreateSessionOptions(out); }, error);
    if (!session_options || !apply(*session_options, options, error)) {
      return fail(LoadFailure{"ONNX Runtime does not accept its session options", error});
    }
    BATON_ASSIGN(auto remarks, add_providers(*session_options, options.providers));
    auto session = ort_make<OrtSession>(
        api, api.ReleaseSession,
        [&](OrtSession** out) {
          return api.CreateSession(shared_->env.get(), file.c_str(), session_options.get(), out);
        },
        error);
    if (!session) return fail(LoadFailure{"ONNX Runtime does not load its file", error});
    BATON_ASSIGN(ModelSignature signature, read_signature(api, session.get()));
    signature.control_flow = may_hold_control_flow(file);
    return std::make_unique<OrtRuntime>(shared_, std::move(session), std::move(signature),
                                        std::move(remarks));
  }

  [[nodiscard]] std::string version() const override { return shared_->version; }

 private:
  bool apply(OrtSessionOptions& session_options, const RuntimeOptions& options,
             std::string& error) const {
    const OrtApi& api = *shared_->api;
    OrtSessionOptions* out = &session_options;
    return ort_ok(api, api.SetIntraOpNumThreads(out, options.intra_op_threads), error) &&
           ort_ok(api, api.SetInterOpNumThreads(out, options.inter_op_threads), error) &&
           ort_ok(api,
                  api.SetSessionExecutionMode(
                      out, options.parallel_execution ? ORT_PARALLEL : ORT_SEQUENTIAL),
                  error) &&
           ort_ok(api, api.SetSessionGraphOptimizationLevel(out, graph_level(options.graph_level)),
                  error) &&
           ort_ok(api,
                  options.memory_arena ? api.EnableCpuMemArena(out) : api.DisableCpuMemArena(out),
                  error) &&
           ort_ok(api,
                  options.memory_pattern ? api.EnableMemPattern(out) : api.DisableMemPattern(out),
                  error) &&
           ort_ok(api, api.SessionOptionsSetCustomCreateThreadFn(out, &PoolThreads::create),
                  error) &&
           ort_ok(api,
                  api.SessionOptionsSetCustomThreadCreationOptions(out, shared_->threads.get()),
                  error) &&
           ort_ok(api, api.SessionOptionsSetCustomJoinThreadFn(out, &PoolThreads::join), error) &&
           // Spinning pools burn cores that other models need (onnxruntime#17011, #11841).
           ort_ok(api, api.AddSessionConfigEntry(out, "session.intra_op.allow_spinning", "0"),
                  error) &&
           ort_ok(api, api.AddSessionConfigEntry(out, "session.inter_op.allow_spinning", "0"),
                  error);
  }

  // What was missing.
  Result<std::vector<std::string>, LoadFailure> add_providers(
      OrtSessionOptions& session_options, const std::vector<ExecutionProvider>& providers) const {
    std::vector<std::string> remarks;
    for (const ExecutionProvider& provider : providers) {
      std::string error;
      if (add_provider(*shared_->api, session_options, provider, error)) continue;
      std::string missing = "ONNX Runtime " + shared_->version + " cannot use its " +
                            std::string(provider_name(provider.kind)) + " provider";
      if (!shared_->cpu_when_missing) return fail(LoadFailure{std::move(missing), error});
      remarks.push_back(missing + ", it runs without: " + error);
    }
    return remarks;
  }

  std::shared_ptr<const OrtShared> shared_;
};

// From 1.29 on, the library sends events about its use to its maker, with a device id that it keeps
// in the user's home, and leaves a file a process in the folder for temporary files. Its interface
// turns the events off only once that has begun; this does so before.
void forbid_telemetry() {
  setenv("ORT_DISABLE_TELEMETRY", "1", 1);
}

Result<const OrtApiBase*, LoadFailure> open_library(const std::string& path) {
  forbid_telemetry();
  // Never closed: sessions' threads and static destructors of the library outlive any useful moment
  // for it.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* cause = dlerror();
    return fail(LoadFailure{"ONNX Runtime cannot be opened: " +
                            std::string(cause != nullptr ? cause : path.c_str())});
  }
  using GetApiBase = const OrtApiBase* (*)();
  const auto get = reinterpret_cast<GetApiBase>(dlsym(library, "OrtGetApiBase"));
  if (get == nullptr) return fail(LoadFailure{path + " is not an ONNX Runtime library"});
  return get();
}

}  // namespace

Result<std::unique_ptr<ports::RuntimeLoader>, LoadFailure> open_onnxruntime(
    const OrtOptions& options, ports::Log& log, const ports::Clock& clock) {
  BATON_ASSIGN(const OrtApiBase* base, open_library(options.library));
  const std::string version = base->GetVersionString();
  const OrtApi* api = base->GetApi(ORT_API_VERSION);
  if (api == nullptr) {
    return fail(LoadFailure{"ONNX Runtime " + version + " is too old: 1." +
                            std::to_string(ORT_API_VERSION) + " or newer is needed"});
  }
  auto shared = std::make_shared<OrtShared>();
  shared->api = api;
  shared->version = version;
  shared->cpu_when_missing = options.cpu_when_missing;
  shared->log = &log;
  shared->clock = &clock;
  shared->threads = std::make_unique<PoolThreads>();
  std::string error;
  shared->env = ort_make<OrtEnv>(
      *api, api->ReleaseEnv,
      [&](OrtEnv** out) {
        return api->CreateEnvWithCustomLogger(log_from_ort, &log, ORT_LOGGING_LEVEL_ERROR, "baton",
                                              out);
      },
      error);
  if (shared->env) {
    shared->cpu = ort_make<OrtMemoryInfo>(
        *api, api->ReleaseMemoryInfo,
        [&](OrtMemoryInfo** out) {
          return api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, out);
        },
        error);
  }
  if (!shared->cpu) return fail(LoadFailure{"ONNX Runtime does not start: " + error});
  static_cast<void>(api->DisableTelemetryEvents(shared->env.get()));
  return std::make_unique<OrtLoader>(std::move(shared));
}

}  // namespace baton::adapters::onnx
