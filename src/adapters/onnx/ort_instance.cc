#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "adapters/onnx/ort_runtime.h"

namespace baton::adapters::onnx {
namespace {

// The cause in ONNX Runtime's words, perhaps with values of the request.
ports::RunFailure broken(std::string cause) {
  return {false, std::move(cause)};
}

bool is_aligned(const std::byte* data, size_t alignment) {
  return alignment < 2 || std::bit_cast<uintptr_t>(data) % alignment == 0;
}

constexpr size_t kCopiedBytes = 64 * 1024;  // copying an input of this size costs less than binding

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
                       ModelSignature signature, std::vector<std::string> remarks)
    : shared_(std::move(shared)),
      session_(std::move(session)),
      signature_(std::move(signature)),
      remarks_(std::move(remarks)),
      failures_(*shared_->log, *shared_->clock) {}

Result<std::unique_ptr<ports::RuntimeInstance>, LoadFailure> OrtRuntime::create_instance(
    const ModelConfig& config) {
  auto instance = std::make_unique<OrtInstance>(*this, config);
  if (std::string error = instance->prepare(); !error.empty()) {
    return fail(LoadFailure{"ONNX Runtime makes no instance of it", error});
  }
  return instance;
}

OrtInstance::OrtInstance(OrtRuntime& runtime, const ModelConfig& config)
    : runtime_(runtime),
      api_(*runtime.shared().api),
      model_(config.name),
      pool_(std::make_shared<OutputPool>(api_, runtime.shared().cpu.get())) {
  for (const TensorSpec& spec : runtime.signature().outputs) {
    const bool chosen =
        std::ranges::find(config.outputs, spec.name, &TensorSpec::name) != config.outputs.end();
    if (chosen || config.outputs.empty()) served_outputs_.push_back(&spec);
  }
  known_shapes_ = std::ranges::all_of(served_outputs_, [&](const TensorSpec* spec) {
    return has_known_shape(*spec, config.batches());
  });
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
  // What fails is in the status of the run; the library's own line would put values into the log.
  if (!ort_ok(api_,
              api_.RunOptionsSetRunLogSeverityLevel(run_options_.get(), ORT_LOGGING_LEVEL_FATAL),
              error)) {
    return error;
  }
  ort_ok(api_, api_.GetAllocatorWithDefaultOptions(&allocator_), error);
  return error;
}

ports::RunFailure OrtInstance::failed(const std::string& cause) {
  runtime_.failures().write(model_, cause);
  return {false, "model \"" + model_ + "\" failed to run this request: " + text_for_client(cause)};
}

Result<ports::BatchResult, ports::RunFailure> OrtInstance::run(Members members) {
  const bool pooled = known_shapes_;
  auto result = run_bound(members);
  if (result.has_value()) {
    shapes_held_ = shapes_held_ || pooled;
  } else if (pooled && !result.error().terminated && may_be_of_shapes(result.error().message)) {
    // Perhaps an output has another shape than the file declares: then from now on without buffers
    // of our own.
    known_shapes_ = false;
    result = run_bound(members);
    known_shapes_ = !result.has_value();
  }
  if (result.has_value() || result.error().terminated) return result;
  return fail(failed(result.error().message));
}

// A model whose shapes have held before fails for its values, which a second run does not change,
// unless the library speaks of shapes.
bool OrtInstance::may_be_of_shapes(const std::string& cause) const {
  return !shapes_held_ || cause.find("shape") != std::string::npos;
}

Result<ports::BatchResult, ports::RunFailure> OrtInstance::run_bound(Members members) {
  const ports::Clock& clock = *runtime_.shared().clock;
  std::string error;
  if (!bind_inputs(members, error) || !bind_outputs(members, error)) return fail(broken(error));
  ports::RunTimes times;
  times.computed_from = clock.now();
  std::string ignored;
  // A terminate() that came too late for the run before must not end this one: ONNX Runtime looks
  // at its flag before each node and leaves it set when the run it was meant for has passed its
  // last one.
  terminated_.store(false, std::memory_order_relaxed);
  static_cast<void>(ort_ok(api_, api_.RunOptionsUnsetTerminate(run_options_.get()), ignored));
  running_.store(true, std::memory_order_release);
  const bool ran = execute(error);
  running_.store(false, std::memory_order_release);
  times.computed_to = clock.now();
  if (!ran) {
    if (terminated_.load(std::memory_order_acquire)) {
      return fail(ports::RunFailure{true, "terminated"});
    }
    return fail(broken(error));
  }
  auto result = collect(members);
  if (result.has_value()) result->times = times;
  return result;
}

bool OrtInstance::execute(std::string& error) {
  return ort_ok(api_, api_.RunWithBinding(runtime_.session(), run_options_.get(), binding_.get()),
                error);
}

void OrtInstance::terminate() {
  if (!running_.load(std::memory_order_acquire)) return;
  terminated_.store(true, std::memory_order_release);
  std::string ignored;
  static_cast<void>(ort_ok(api_, api_.RunOptionsSetTerminate(run_options_.get()), ignored));
}

bool OrtInstance::bind_inputs(Members members, std::string& error) {
  const InferRequest& first = *members.front();
  const bool named =
      std::ranges::equal(inputs_, first.inputs, {}, &BoundInput::name, &Tensor::name);
  if (!named) name_inputs(first);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!bind_input(members, i, error)) return false;
  }
  return true;
}

void OrtInstance::name_inputs(const InferRequest& first) {
  api_.ClearBoundInputs(binding_.get());
  inputs_.clear();
  for (const Tensor& input : first.inputs) inputs_.emplace_back().name = input.name;
}

bool OrtInstance::bind_input(Members members, size_t index, std::string& error) {
  BoundInput& bound = inputs_[index];
  const Tensor& first = members.front()->inputs[index];
  shape_ = first.shape;
  size_t bytes = first.data.size();
  for (const InferRequest* member : members.subspan(1)) {
    shape_.front() += member->inputs[index].shape.front();
    bytes += member->inputs[index].data.size();
  }
  const bool text = first.type == DataType::kBytes;
  const bool copied = !text && (members.size() > 1 || bytes <= kCopiedBytes ||
                                !is_aligned(first.data.data(), element_size(first.type)));
  const bool as_before = bound.in_buffer && bound.type == first.type && bound.shape == shape_;
  if (copied) {
    bound.buffer.resize(bytes);
    std::byte* to = bound.buffer.data();
    for (const InferRequest* member : members) {
      to = std::ranges::copy(member->inputs[index].data, to).out;
    }
    if (as_before) return true;
  }
  bound.in_buffer = false;
  bound.value = text ? make_string_input(members, index, shape_, error)
                     : view_of(copied ? bound.buffer : first.data, first.type, error);
  if (!bound.value) return false;
  bound.type = first.type;
  bound.shape = shape_;
  bound.in_buffer = copied;
  return ort_ok(api_, api_.BindInput(binding_.get(), bound.name.c_str(), bound.value.get()), error);
}

OrtInstance::OwnedValue OrtInstance::view_of(std::span<const std::byte> data, DataType type,
                                             std::string& error) {
  return ort_make<OrtValue>(
      api_, api_.ReleaseValue,
      [&](OrtValue** out) {
        // ONNX Runtime reads inputs only; its interface has no const form.
        return api_.CreateTensorWithDataAsOrtValue(
            runtime_.shared().cpu.get(), const_cast<std::byte*>(data.data()), data.size(),
            shape_.data(), shape_.size(), to_onnx(type), out);
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
  wanted_outputs_.clear();
  uint64_t rows = 0;
  for (const InferRequest* member : members) rows += member->items;
  for (const TensorSpec* spec : served_outputs_) {
    const bool wanted = std::ranges::any_of(
        members, [&](const InferRequest* member) { return wants(*member, spec->name); });
    if (wanted) wanted_outputs_.push_back(spec);
  }
  outputs_.reset();
  if (known_shapes_ && bind_pooled_outputs(rows, error)) return true;
  return error.empty() && bind_arena_outputs(error);
}

// False without an error when the outputs are not for the pool.
bool OrtInstance::bind_pooled_outputs(uint64_t rows, std::string& error) {
  outputs_ = pool_->take(wanted_outputs_, rows);
  if (outputs_ == nullptr) outputs_ = pool_->make(wanted_outputs_, rows, error);
  if (outputs_ == nullptr) return false;
  if (outputs_->number == bound_set_) return true;
  bound_set_ = 0;
  api_.ClearBoundOutputs(binding_.get());
  for (size_t i = 0; i < wanted_outputs_.size(); ++i) {
    const char* name = wanted_outputs_[i]->name.c_str();
    if (!ort_ok(api_, api_.BindOutput(binding_.get(), name, outputs_->values[i].get()), error)) {
      return false;
    }
  }
  bound_set_ = outputs_->number;
  return true;
}

// Bound anew for each run: what stays bound would be written to again.
bool OrtInstance::bind_arena_outputs(std::string& error) {
  bound_set_ = 0;
  api_.ClearBoundOutputs(binding_.get());
  const OrtMemoryInfo* cpu = runtime_.shared().cpu.get();
  return std::ranges::all_of(wanted_outputs_, [&](const TensorSpec* spec) {
    return ort_ok(api_, api_.BindOutputToDevice(binding_.get(), spec->name.c_str(), cpu), error);
  });
}

Result<ports::BatchResult, ports::RunFailure> OrtInstance::collect(Members members) {
  if (outputs_ != nullptr) {
    const OutputSet& set = *outputs_;
    std::vector<Storage> storage;
    storage.push_back(pool_->lease(std::move(outputs_)));
    return split(members, set.tensors, std::move(storage));
  }
  std::string error;
  OrtValue** values = nullptr;
  size_t count = 0;
  if (!ort_ok(api_, api_.GetBoundOutputValues(binding_.get(), allocator_, &values, &count),
              error)) {
    return fail(broken(error));
  }
  std::vector<Storage> storage;
  storage.reserve(count);
  std::vector<OrtValue*> raw(values, values + count);
  // Every value is owned before anything can fail.
  for (OrtValue* value : raw) {
    storage.emplace_back(value, [release = api_.ReleaseValue](OrtValue* v) { release(v); });
  }
  static_cast<void>(
      ort_ok(api_, api_.AllocatorFree(allocator_, static_cast<void*>(values)), error));
  std::vector<Tensor> outputs;
  outputs.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    BATON_ASSIGN(outputs.emplace_back(), read_output(raw[i], wanted_outputs_[i]->name, storage));
  }
  return split(members, outputs, std::move(storage));
}

// Gives each member its rows of what it wants.
Result<ports::BatchResult, ports::RunFailure> OrtInstance::split(Members members,
                                                                 std::span<const Tensor> outputs,
                                                                 std::vector<Storage> storage) {
  ports::BatchResult batch;
  batch.results.resize(members.size());
  if (members.size() == 1) {
    batch.results.front().outputs.assign(outputs.begin(), outputs.end());
    batch.results.front().storage = std::move(storage);
    return batch;
  }
  for (InferResult& result : batch.results) result.storage = storage;
  const uint64_t rows =
      std::accumulate(members.begin(), members.end(), uint64_t{0},
                      [](uint64_t sum, const InferRequest* member) { return sum + member->items; });
  for (const Tensor& whole : outputs) {
    if (whole.shape.empty() || whole.shape.front() != static_cast<int64_t>(rows)) {
      return fail(broken("output \"" + whole.name + "\" has shape " + shape_text(whole.shape) +
                         " for a batch of " + std::to_string(rows)));
    }
    RowSplitter splitter(whole);
    for (size_t m = 0; m < members.size(); ++m) {
      Tensor part = splitter.take(members[m]->items);
      if (wants(*members[m], whole.name)) batch.results[m].outputs.push_back(std::move(part));
    }
  }
  return batch;
}

Result<Tensor, ports::RunFailure> OrtInstance::read_output(OrtValue* value, const std::string& name,
                                                           std::vector<Storage>& storage) {
  std::string error;
  Tensor tensor;
  tensor.name = name;
  int is_tensor = 0;
  if (!ort_ok(api_, api_.IsTensor(value, &is_tensor), error) || is_tensor == 0) {
    return fail(broken("output \"" + name + "\" is not a tensor"));
  }
  auto info = ort_make<OrtTensorTypeAndShapeInfo>(
      api_, api_.ReleaseTensorTypeAndShapeInfo,
      [&](OrtTensorTypeAndShapeInfo** out) { return api_.GetTensorTypeAndShape(value, out); },
      error);
  if (!info) return fail(broken(error));
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t rank = 0;
  size_t count = 0;
  bool ok = ort_ok(api_, api_.GetTensorElementType(info.get(), &element), error) &&
            ort_ok(api_, api_.GetDimensionsCount(info.get(), &rank), error) &&
            ort_ok(api_, api_.GetTensorShapeElementCount(info.get(), &count), error);
  tensor.shape.resize(rank);
  ok = ok && ort_ok(api_, api_.GetDimensions(info.get(), tensor.shape.data(), rank), error);
  const auto type = from_onnx(element);
  if (!ok || !type) return fail(broken("output \"" + name + "\" cannot be read: " + error));
  tensor.type = *type;
  if (tensor.type == DataType::kBytes)
    return read_strings(value, std::move(tensor), count, storage);
  void* data = nullptr;
  if (!ort_ok(api_, api_.GetTensorMutableData(value, &data), error)) return fail(broken(error));
  tensor.data = {static_cast<const std::byte*>(data), count * element_size(tensor.type)};
  return tensor;
}

Result<Tensor, ports::RunFailure> OrtInstance::read_strings(OrtValue* value, Tensor tensor,
                                                            size_t count,
                                                            std::vector<Storage>& storage) {
  std::string error;
  size_t total = 0;
  if (!ort_ok(api_, api_.GetStringTensorDataLength(value, &total), error)) {
    return fail(broken(error));
  }
  std::vector<char> text(total);
  std::vector<size_t> offsets(count);
  if (!ort_ok(api_, api_.GetStringTensorContent(value, text.data(), total, offsets.data(), count),
              error)) {
    return fail(broken(error));
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
