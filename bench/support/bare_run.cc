#include "support/bare_run.h"

#include <dlfcn.h>
#include <onnxruntime_c_api.h>

#include <array>

#include "support/figures.h"
#include "support/server_process.h"

namespace bench {

// Never freed: the process ends with it.
struct BareRun::Impl {
  const OrtApi* api = nullptr;
  OrtEnv* env = nullptr;
  OrtSession* session = nullptr;
  std::array<std::array<int32_t, 16>, 2> data{};
  std::array<OrtValue*, 2> inputs{};

  void check(OrtStatus* status) const {
    if (status != nullptr) die(api->GetErrorMessage(status));
  }
};

BareRun::BareRun(const std::string& onnx) : impl_(std::make_unique<Impl>()) {
  void* library = dlopen(ort_library().c_str(), RTLD_NOW);
  if (library == nullptr) die("ONNX Runtime cannot be opened");
  const auto get = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
  Impl& ort = *impl_;
  ort.api = get()->GetApi(ORT_API_VERSION);
  ort.check(ort.api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "bench", &ort.env));
  OrtSessionOptions* options = nullptr;
  ort.check(ort.api->CreateSessionOptions(&options));
  ort.check(ort.api->SetIntraOpNumThreads(options, 1));
  ort.check(
      ort.api->CreateSessionFromArray(ort.env, onnx.data(), onnx.size(), options, &ort.session));
  OrtMemoryInfo* memory = nullptr;
  ort.check(ort.api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
  const std::array<int64_t, 2> shape = {1, 16};
  for (size_t i = 0; i < 2; ++i) {
    ort.check(ort.api->CreateTensorWithDataAsOrtValue(
        memory, ort.data[i].data(), sizeof ort.data[i], shape.data(), 2,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, &ort.inputs[i]));
  }
}

BareRun::~BareRun() = default;

void BareRun::run() {
  Impl& ort = *impl_;
  static constexpr std::array<const char*, 2> kInputs = {"INPUT0", "INPUT1"};
  static constexpr std::array<const char*, 2> kOutputs = {"OUTPUT0", "OUTPUT1"};
  std::array<OrtValue*, 2> outputs{};
  ort.check(ort.api->Run(ort.session, nullptr, kInputs.data(), ort.inputs.data(), 2,
                         kOutputs.data(), 2, outputs.data()));
  for (OrtValue* output : outputs) ort.api->ReleaseValue(output);
}

}  // namespace bench
