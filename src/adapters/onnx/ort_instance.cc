#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "adapters/onnx/ort_runtime.h"

namespace baton::adapters::onnx {
namespace {

bool is_aligned(const std::byte* data, size_t alignment) {
  return alignment < 2 || std::bit_cast<uintptr_t>(data) % alignment == 0;
}

bool wants(const InferRequest& request, const std::string& output) {
  return request.outputs.empty() ||
         std::ranges::find(request.outputs, output, &RequestedOutput::name) !=
             request.outputs.end();
}

// The byte range of `count` BYTES elements starting at `offset`.
size_t bytes_elements_end(std::span<const std::byte> data, size_t offset, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t length = 0;
    std::memcpy(&length, data.data() + offset, sizeof length);
    offset += sizeof length + length;
  }
  return offset;
}

// Hands each member its rows of a batched output, in order.
class RowSplitter {
 public:
  explicit RowSplitter(const Tensor& whole) : whole_(whole) {
    const auto inner = std::span<const int64_t>(whole.shape).subspan(1);
    elements_per_row_ = element_count(inner).value_or(0);
  }
  Tensor take(uint64_t rows) {
    Tensor part;
    part.name = whole_.name;
    part.type = whole_.type;
    part.shape = whole_.shape;
    part.shape.front() = static_cast<int64_t>(rows);
    const size_t size = element_size(whole_.type);
    const size_t end = size != 0
                           ? offset_ + rows * elements_per_row_ * size
                           : bytes_elements_end(whole_.data, offset_, rows * elements_per_row_);
    part.data = whole_.data.subspan(offset_, end - offset_);
    offset_ = end;
    return part;
  }

 private:
  const Tensor& whole_;
  uint64_t elements_per_row_ = 0;
  size_t offset_ = 0;
};

}  // namespace

OrtRuntime::OrtRuntime(std::shared_ptr<const OrtShared> shared, OrtOwned<OrtSession> session,
                       ModelSignature signature)
    : shared_(std::move(shared)), session_(std::move(session)), signature_(std::move(signature)) {}

Result<std::unique_ptr<ports::RuntimeInstance>, LoadFailure> OrtRuntime::create_instance(
    const ModelConfig& config) {
  auto instance = std::make_unique<OrtInstance>(*this, config);
  if (std::string error = instance->prepare(); !error.empty()) {
    return fail(LoadFailure{"an instance cannot be made: " + error});
  }
  return instance;
}

OrtInstance::OrtInstance(OrtRuntime& runtime, const ModelConfig& config)
    : runtime_(runtime),
      api_(*runtime.shared().api),
      model_(config.name),
      joined_(runtime.signature().inputs.size()) {
  for (const TensorSpec& spec : runtime.signature().outputs) {
    const bool chosen =
        std::ranges::find(config.outputs, spec.name, &TensorSpec::name) != config.outputs.end();
    if (chosen || config.outputs.empty()) served_outputs_.push_back(&spec);
  }
}

std::string OrtInstance::prepare() {
  std::string error;
  binding_ = ort_make<OrtIoBinding>(
      api_, api_.ReleaseIoBinding,
      [&](OrtIoBinding** out) { return api_.CreateIoBinding(runtime_.session(), out); }, error);
  if (!binding_) return error;
  run_options_ = ort_make<OrtRunOptions>(
      api_, api_.ReleaseRunOptions, [&](OrtRunOptions** out) { return api_.CreateRunOptions(out); },
      error);
  if (!run_options_) return error;
  ort_ok(api_, api_.GetAllocatorWithDefaultOptions(&allocator_), error);
  return error;
}

ports::RunFailure OrtInstance::failed(const std::string& cause) {
  runtime_.shared().log->log(ports::LogLevel::kError, "model " + model_ + " failed: " + cause);
  return {false, "model \"" + model_ + "\" failed to run this request"};
}

Result<ports::BatchResult, ports::RunFailure> OrtInstance::run(Members members) {
  const ports::Clock& clock = *runtime_.shared().clock;
  std::string error;
  if (!bind_inputs(members, error) || !bind_outputs(members, error)) return fail(failed(error));
  ports::RunTimes times;
  times.computed_from = clock.now();
  running_.store(true, std::memory_order_release);
  const bool ran = execute(error);
  running_.store(false, std::memory_order_release);
  times.computed_to = clock.now();
  std::string ignored;
  if (!ran) {
    inputs_.clear();
    const bool terminated = error.find("terminate") != std::string::npos;
    static_cast<void>(ort_ok(api_, api_.RunOptionsUnsetTerminate(run_options_.get()), ignored));
    if (terminated) return fail(ports::RunFailure{true, "terminated"});
    return fail(failed(error));
  }
  auto result = collect(members);
  inputs_.clear();
  if (result.has_value()) result->times = times;
  return result;
}

bool OrtInstance::execute(std::string& error) {
  return ort_ok(api_, api_.RunWithBinding(runtime_.session(), run_options_.get(), binding_.get()),
                error);
}

void OrtInstance::terminate() {
  if (!running_.load(std::memory_order_acquire)) return;
  std::string ignored;
  static_cast<void>(ort_ok(api_, api_.RunOptionsSetTerminate(run_options_.get()), ignored));
}

bool OrtInstance::bind_inputs(Members members, std::string& error) {
  api_.ClearBoundInputs(binding_.get());
  inputs_.clear();
  const size_t count = members.front()->inputs.size();
  joined_.resize(std::max(joined_.size(), count));
  for (size_t i = 0; i < count; ++i) {
    OwnedValue value = make_input(members, i, error);
    if (!value) return false;
    const std::string& name = members.front()->inputs[i].name;
    if (!ort_ok(api_, api_.BindInput(binding_.get(), name.c_str(), value.get()), error)) {
      return false;
    }
    inputs_.push_back(std::move(value));
  }
  return true;
}

OrtInstance::OwnedValue OrtInstance::make_input(Members members, size_t index, std::string& error) {
  const Tensor& first = members.front()->inputs[index];
  Shape shape = first.shape;
  if (members.size() > 1) {
    shape.front() = 0;
    for (const InferRequest* member : members) shape.front() += member->inputs[index].shape.front();
  }
  if (first.type == DataType::kBytes) return make_string_input(members, index, shape, error);
  std::span<const std::byte> data = first.data;
  if (members.size() > 1 || !is_aligned(data.data(), element_size(first.type))) {
    std::vector<std::byte>& joined = joined_[index];
    joined.clear();
    for (const InferRequest* member : members) {
      const auto part = member->inputs[index].data;
      joined.insert(joined.end(), part.begin(), part.end());
    }
    data = joined;
  }
  return ort_make<OrtValue>(
      api_, api_.ReleaseValue,
      [&](OrtValue** out) {
        // ONNX Runtime reads inputs only; its interface has no const form.
        return api_.CreateTensorWithDataAsOrtValue(
            runtime_.shared().cpu.get(), const_cast<std::byte*>(data.data()), data.size(),
            shape.data(), shape.size(), to_onnx(first.type), out);
      },
      error);
}

OrtInstance::OwnedValue OrtInstance::make_string_input(Members members, size_t index,
                                                       const Shape& shape, std::string& error) {
  auto value = ort_make<OrtValue>(
      api_, api_.ReleaseValue,
      [&](OrtValue** out) {
        return api_.CreateTensorAsOrtValue(allocator_, shape.data(), shape.size(),
                                           ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, out);
      },
      error);
  if (!value) return value;
  size_t element = 0;
  for (const InferRequest* member : members) {
    const auto data = member->inputs[index].data;
    size_t offset = 0;
    while (offset < data.size()) {
      uint32_t length = 0;
      std::memcpy(&length, data.data() + offset, sizeof length);
      offset += sizeof length;
      char* buffer = nullptr;
      if (!ort_ok(api_,
                  api_.GetResizedStringTensorElementBuffer(value.get(), element, length, &buffer),
                  error)) {
        return OwnedValue(nullptr, OrtDeleter<OrtValue>{api_.ReleaseValue});
      }
      std::memcpy(buffer, data.data() + offset, length);
      offset += length;
      ++element;
    }
  }
  return value;
}

bool OrtInstance::bind_outputs(Members members, std::string& error) {
  api_.ClearBoundOutputs(binding_.get());
  bound_outputs_.clear();
  for (const TensorSpec* output : served_outputs_) {
    const TensorSpec& spec = *output;
    const bool wanted = std::ranges::any_of(
        members, [&](const InferRequest* member) { return wants(*member, spec.name); });
    if (!wanted) continue;
    // The outputs come from the arena of the session: its blocks are the pool.
    if (!ort_ok(
            api_,
            api_.BindOutputToDevice(binding_.get(), spec.name.c_str(), runtime_.shared().cpu.get()),
            error)) {
      return false;
    }
    bound_outputs_.push_back(&spec);
  }
  return true;
}

Result<ports::BatchResult, ports::RunFailure> OrtInstance::collect(Members members) {
  std::string error;
  OrtValue** values = nullptr;
  size_t count = 0;
  if (!ort_ok(api_, api_.GetBoundOutputValues(binding_.get(), allocator_, &values, &count),
              error)) {
    return fail(failed(error));
  }
  std::vector<Storage> storage;
  std::vector<OrtValue*> raw(values, values + count);
  // Every value is owned before anything can fail.
  for (OrtValue* value : raw) {
    storage.emplace_back(value, [release = api_.ReleaseValue](OrtValue* v) { release(v); });
  }
  static_cast<void>(ort_ok(api_, api_.AllocatorFree(allocator_, values), error));
  ports::BatchResult batch;
  batch.results.resize(members.size());
  const uint64_t rows =
      std::accumulate(members.begin(), members.end(), uint64_t{0},
                      [](uint64_t sum, const InferRequest* member) { return sum + member->items; });
  for (size_t i = 0; i < raw.size(); ++i) {
    const std::string& name = bound_outputs_[i]->name;
    BATON_ASSIGN(const Tensor whole, read_output(raw[i], name, storage));
    const bool batched = !whole.shape.empty() && whole.shape.front() == static_cast<int64_t>(rows);
    if (members.size() > 1 && !batched) {
      return fail(failed("output \"" + name + "\" has shape " + shape_text(whole.shape) +
                         " for a batch of " + std::to_string(rows)));
    }
    if (members.size() == 1) {
      batch.results.front().outputs.push_back(whole);
      continue;
    }
    RowSplitter splitter(whole);
    for (size_t m = 0; m < members.size(); ++m) {
      Tensor part = splitter.take(members[m]->items);
      if (wants(*members[m], name)) batch.results[m].outputs.push_back(std::move(part));
    }
  }
  for (InferResult& result : batch.results) result.storage = storage;
  return batch;
}

Result<Tensor, ports::RunFailure> OrtInstance::read_output(OrtValue* value, const std::string& name,
                                                           std::vector<Storage>& storage) {
  std::string error;
  Tensor tensor;
  tensor.name = name;
  int is_tensor = 0;
  if (!ort_ok(api_, api_.IsTensor(value, &is_tensor), error) || is_tensor == 0) {
    return fail(failed("output \"" + name + "\" is not a tensor"));
  }
  auto info = ort_make<OrtTensorTypeAndShapeInfo>(
      api_, api_.ReleaseTensorTypeAndShapeInfo,
      [&](OrtTensorTypeAndShapeInfo** out) { return api_.GetTensorTypeAndShape(value, out); },
      error);
  if (!info) return fail(failed(error));
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t rank = 0;
  size_t count = 0;
  bool ok = ort_ok(api_, api_.GetTensorElementType(info.get(), &element), error) &&
            ort_ok(api_, api_.GetDimensionsCount(info.get(), &rank), error) &&
            ort_ok(api_, api_.GetTensorShapeElementCount(info.get(), &count), error);
  tensor.shape.resize(rank);
  ok = ok && ort_ok(api_, api_.GetDimensions(info.get(), tensor.shape.data(), rank), error);
  const auto type = from_onnx(element);
  if (!ok || !type) return fail(failed("output \"" + name + "\" cannot be read: " + error));
  tensor.type = *type;
  if (tensor.type == DataType::kBytes)
    return read_strings(value, std::move(tensor), count, storage);
  void* data = nullptr;
  if (!ort_ok(api_, api_.GetTensorMutableData(value, &data), error)) return fail(failed(error));
  tensor.data = {static_cast<const std::byte*>(data), count * element_size(tensor.type)};
  return tensor;
}

Result<Tensor, ports::RunFailure> OrtInstance::read_strings(OrtValue* value, Tensor tensor,
                                                            size_t count,
                                                            std::vector<Storage>& storage) {
  std::string error;
  size_t total = 0;
  if (!ort_ok(api_, api_.GetStringTensorDataLength(value, &total), error)) {
    return fail(failed(error));
  }
  std::vector<char> text(total);
  std::vector<size_t> offsets(count);
  if (!ort_ok(api_, api_.GetStringTensorContent(value, text.data(), total, offsets.data(), count),
              error)) {
    return fail(failed(error));
  }
  auto encoded = std::make_shared<std::vector<std::byte>>(total + count * sizeof(uint32_t));
  std::byte* out = encoded->data();
  for (size_t i = 0; i < count; ++i) {
    const size_t end = i + 1 < count ? offsets[i + 1] : total;
    const auto length = static_cast<uint32_t>(end - offsets[i]);
    std::memcpy(out, &length, sizeof length);
    out += sizeof length;
    if (length != 0) std::memcpy(out, text.data() + offsets[i], length);
    out += length;
  }
  tensor.data = *encoded;
  storage.push_back(std::move(encoded));
  return tensor;
}

}  // namespace baton::adapters::onnx
