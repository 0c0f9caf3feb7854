#include "service/batching/synthetic_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/half.h"

namespace baton::service {
namespace {

template <class T>
void append(std::string& bytes, T value) {
  const size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

void append_random(std::string& bytes, DataType type, Random& random) {
  switch (type) {
    case DataType::kFp16:
      return append(bytes, float_to_fp16(static_cast<float>(random.uniform())));
    case DataType::kBf16:
      return append(bytes, float_to_bf16(static_cast<float>(random.uniform())));
    case DataType::kFp32:
      return append(bytes, static_cast<float>(random.uniform()));
    case DataType::kFp64:
      return append(bytes, random.uniform());
    case DataType::kBytes:
      append(bytes, uint32_t{4});
      bytes += random.chance(0.5) ? "warm" : "word";
      return;
    default:
      break;
  }
  const size_t size = element_size(type);  // integers and booleans, little-endian
  bytes.push_back(random.chance(0.5) ? '\1' : '\0');
  bytes.append(size - 1, '\0');
}

std::string make_data(DataType type, uint64_t elements, bool zero, Random& random) {
  std::string bytes;
  if (zero) {
    // BYTES: empty words, each a length of four bytes.
    bytes.assign(elements * (type == DataType::kBytes ? 4 : element_size(type)), '\0');
    return bytes;
  }
  for (uint64_t i = 0; i < elements; ++i) append_random(bytes, type, random);
  return bytes;
}

void add_input(InferRequest& request, const std::string& name, DataType type, Shape shape,
               std::string data) {
  auto kept = std::make_shared<const std::string>(std::move(data));
  request.inputs.push_back({.name = name,
                            .type = type,
                            .shape = std::move(shape),
                            .data = std::as_bytes(std::span(*kept))});
  request.context.bytes += kept->size();
  request.storage.push_back(std::move(kept));
}

const Shape* sampled_dims(const ModelConfig& config, const std::string& input) {
  for (const WarmupSample& sample : config.warmups) {
    const auto found = sample.inputs.find(input);
    if (found != sample.inputs.end()) return &found->second.dims;
  }
  return nullptr;
}

Shape concrete_dims(const ModelConfig& config, const TensorSpec& input) {
  Shape dims = input.dims;
  const Shape* sampled = sampled_dims(config, input.name);
  if (sampled != nullptr && sampled->size() == dims.size()) return *sampled;
  std::ranges::replace_if(dims, [](int64_t dim) { return dim < 0; }, 1);
  return dims;
}

std::shared_ptr<InferRequest> empty_request(const ModelConfig& config, uint64_t items) {
  auto request = std::make_shared<InferRequest>();
  request->model = config.name;
  request->items = config.batches() ? items : 1;
  return request;
}

Shape with_batch(const ModelConfig& config, const Shape& dims, uint64_t items) {
  Shape shape = dims;
  if (config.batches()) shape.insert(shape.begin(), static_cast<int64_t>(items));
  return shape;
}

// What a sample of a client's request does not have: controls and states, as zeros.
void add_sequence_tensors(const ModelConfig& config, InferRequest& request, Random& random) {
  const auto add = [&](const std::string& name, DataType type, const Shape& dims) {
    if (std::ranges::find(request.inputs, name, &Tensor::name) != request.inputs.end()) return;
    Shape shape = with_batch(config, dims, request.items);
    const uint64_t elements = element_count(shape).value_or(0);
    add_input(request, name, type, std::move(shape), make_data(type, elements, true, random));
  };
  for (const auto& control : config.sequences->controls) {
    add(control.input, control.type, control.dims);
  }
  for (const auto& state : config.sequences->states) add(state.input, state.type, state.first.dims);
}

}  // namespace

std::shared_ptr<const InferRequest> synthetic_request(const ModelConfig& config, uint64_t items,
                                                      Random& random) {
  auto request = empty_request(config, items);
  for (const TensorSpec& input : config.inputs) {
    if (input.optional) continue;
    Shape shape = runtime_shape(input, with_batch(config, concrete_dims(config, input), items),
                                config.batches());
    const uint64_t elements = element_count(shape).value_or(0);
    add_input(*request, input.name, input.type, std::move(shape),
              make_data(input.type, elements, false, random));
  }
  request->batch_key = layout_hash(*request, config.batches());
  return request;
}

Result<std::shared_ptr<const InferRequest>, std::string> sample_request(
    const ModelConfig& config, const WarmupSample& sample,
    const std::map<std::string, std::string>& files, Random& random) {
  auto request = empty_request(config, std::max(sample.batch_size, 1U));
  for (const auto& [name, input] : sample.inputs) {
    const auto spec = std::ranges::find(config.inputs, name, &TensorSpec::name);
    Shape shape = with_batch(config, input.dims, request->items);
    if (spec != config.inputs.end()) shape = runtime_shape(*spec, shape, config.batches());
    const auto elements = element_count(shape);
    if (!elements) {
      return fail(fmt::format("input '{}' has dims {}, expected sizes of 0 or more", name,
                              shape_text(input.dims)));
    }
    std::string data;
    if (input.source == WarmupInput::Source::kFile) {
      const auto file = files.find(input.file);
      if (file == files.end()) {
        return fail(fmt::format("input '{}' names the file '{}', which is not in warmup/", name,
                                input.file));
      }
      data = file->second;
      const auto bytes = std::as_bytes(std::span(data));
      const bool fits = input.type == DataType::kBytes
                            ? is_valid_bytes_tensor(bytes, *elements)
                            : data.size() == *elements * element_size(input.type);
      if (!fits) {
        return fail(
            fmt::format("the file '{}' of input '{}' holds {} bytes, which are not {} "
                        "elements of {}",
                        input.file, name, data.size(), *elements, data_type_name(input.type)));
      }
    } else {
      const bool zero = input.source == WarmupInput::Source::kZero;
      data = make_data(input.type, *elements, zero, random);
    }
    add_input(*request, name, input.type, std::move(shape), std::move(data));
  }
  if (config.sequences) add_sequence_tensors(config, *request, random);
  request->batch_key = layout_hash(*request, config.batches());
  return request;
}

}  // namespace baton::service
