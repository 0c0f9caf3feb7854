#pragma once
// Owners of ONNX Runtime's objects, and the mapping of its types. For the files of this room only.

#include <onnxruntime_c_api.h>

#include <memory>
#include <optional>
#include <string>

#include "domain/data_type.h"

namespace baton::adapters::onnx {

// Set once when the library is opened, before any object exists.
struct OrtApiTable {
  const OrtApi* api = nullptr;
  std::string version;
};

template <class T>
struct OrtDeleter {
  void (*release)(T*) = nullptr;
  void operator()(T* object) const { release(object); }
};
template <class T>
using OrtOwned = std::unique_ptr<T, OrtDeleter<T>>;

// Calls `make(&object)` and owns the result; `error` gets the text when it fails.
template <class T, class Make>
OrtOwned<T> ort_make(const OrtApi& api, void (*release)(T*), Make make, std::string& error) {
  T* object = nullptr;
  if (OrtStatus* status = make(&object)) {
    error = api.GetErrorMessage(status);
    api.ReleaseStatus(status);
    return OrtOwned<T>(nullptr, OrtDeleter<T>{release});
  }
  return OrtOwned<T>(object, OrtDeleter<T>{release});
}

// True on success; `error` gets the text otherwise.
inline bool ort_ok(const OrtApi& api, OrtStatus* status, std::string& error) {
  if (status == nullptr) return true;
  error = api.GetErrorMessage(status);
  api.ReleaseStatus(status);
  return false;
}

[[nodiscard]] std::optional<DataType> from_onnx(ONNXTensorElementDataType type);
[[nodiscard]] ONNXTensorElementDataType to_onnx(DataType type);

}  // namespace baton::adapters::onnx
