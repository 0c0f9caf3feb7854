#include "adapters/onnx/providers.h"

#include <vector>

namespace baton::adapters::onnx {
namespace {

// The library's functions for one provider's options.
template <class Options>
struct Functions {
  OrtStatus*(ORT_API_CALL* create)(Options**);
  OrtStatus*(ORT_API_CALL* update)(Options*, const char* const*, const char* const*, size_t);
  OrtStatus*(ORT_API_CALL* append)(OrtSessionOptions*, const Options*);
  void(ORT_API_CALL* release)(Options*);
};

template <class Options>
bool add(const OrtApi& api, const Functions<Options>& functions, OrtSessionOptions& session,
         const ExecutionProvider& provider, std::string& error) {
  auto options = ort_make<Options>(
      api, functions.release, [&](Options** out) { return functions.create(out); }, error);
  if (!options) return false;
  std::vector<const char*> keys;
  std::vector<const char*> values;
  for (const auto& [key, value] : provider.options) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  return ort_ok(api, functions.update(options.get(), keys.data(), values.data(), keys.size()),
                error) &&
         ort_ok(api, functions.append(&session, options.get()), error);
}

}  // namespace

bool add_provider(const OrtApi& api, OrtSessionOptions& session, const ExecutionProvider& provider,
                  std::string& error) {
  if (provider.kind == ProviderKind::kCuda) {
    return add<OrtCUDAProviderOptionsV2>(
        api,
        {api.CreateCUDAProviderOptions, api.UpdateCUDAProviderOptions,
         api.SessionOptionsAppendExecutionProvider_CUDA_V2, api.ReleaseCUDAProviderOptions},
        session, provider, error);
  }
  return add<OrtTensorRTProviderOptionsV2>(
      api,
      {api.CreateTensorRTProviderOptions, api.UpdateTensorRTProviderOptions,
       api.SessionOptionsAppendExecutionProvider_TensorRT_V2, api.ReleaseTensorRTProviderOptions},
      session, provider, error);
}

}  // namespace baton::adapters::onnx
