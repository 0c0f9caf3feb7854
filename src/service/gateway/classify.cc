#include "service/gateway/classify.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/half.h"

namespace baton::service {
namespace {

// Of an element's text without its label: a value has at most 24 characters, an index 13.
constexpr uint64_t kMostTextBytes = sizeof(uint32_t) + 24 + 1 + 13 + 1;

struct Rows {
  uint64_t count = 0;
  uint64_t elements = 0;  // of each
  uint64_t classes = 0;   // of each
};

Rows rows_of(const Tensor& output, uint32_t classification, bool batches) {
  Rows rows;
  const uint64_t elements = element_count(output.shape).value_or(0);
  const bool has_batch = batches && !output.shape.empty();
  rows.count = has_batch ? static_cast<uint64_t>(output.shape.front()) : 1;
  rows.elements = rows.count == 0 ? 0 : elements / rows.count;
  rows.classes = std::min<uint64_t>(classification, rows.elements);
  return rows;
}

const LabelList& labels_of(const ModelConfig& config, const std::string& output) {
  static const LabelList kNone;
  const auto spec = std::ranges::find(config.outputs, output, &TensorSpec::name);
  return spec == config.outputs.end() || !spec->labels ? kNone : *spec->labels;
}

template <class T>
T element(const Tensor& tensor, uint64_t index) {
  T value;
  std::memcpy(&value, tensor.data.data() + index * sizeof(T), sizeof(T));
  return value;
}

// The `most` best of elements [0, count), best first.
template <class Get>
std::vector<uint64_t> best_of(uint64_t count, uint64_t most, Get get) {
  const auto better = [&](uint64_t a, uint64_t b) {
    const auto x = get(a);
    const auto y = get(b);
    if constexpr (std::is_floating_point_v<decltype(x)>) {
      if (std::isnan(x) || std::isnan(y))
        return std::isnan(x) == std::isnan(y) ? a < b : !std::isnan(x);
    }
    return x == y ? a < b : x > y;
  };
  std::vector<uint64_t> best;  // a heap with the worst on top
  best.reserve(most);
  for (uint64_t i = 0; i < count && most > 0; ++i) {
    if (best.size() == most) {
      if (!better(i, best.front())) continue;
      std::ranges::pop_heap(best, better);
      best.pop_back();
    }
    best.push_back(i);
    std::ranges::push_heap(best, better);
  }
  std::ranges::sort_heap(best, better);
  return best;
}

using Bytes = std::vector<std::byte>;

void append(Bytes& out, std::string_view text) {
  const auto length = static_cast<uint32_t>(text.size());
  const auto prefix = std::as_bytes(std::span(&length, 1));
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), prefix.begin(), prefix.end());
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <class Value>
void append_value(std::string& text, Value value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  text.append(buffer.data(), end);
}

// `get(i)` is element i of the whole tensor.
template <class Get>
void classify_rows(const Rows& rows, const LabelList& labels, Bytes& out, Get get) {
  std::string text;
  for (uint64_t row = 0; row < rows.count; ++row) {
    const uint64_t first = row * rows.elements;
    const auto in_row = [&](uint64_t i) { return get(first + i); };
    for (uint64_t index : best_of(rows.elements, rows.classes, in_row)) {
      text.clear();
      append_value(text, in_row(index));
      text += ':';
      append_value(text, index);
      if (index < labels.lines.size() && !labels.lines[index].empty()) {
        text.append(":").append(labels.lines[index]);
      }
      append(out, text);
    }
  }
}

template <class T>
void classify_as(const Tensor& tensor, const Rows& rows, const LabelList& labels, Bytes& out) {
  classify_rows(rows, labels, out, [&](uint64_t i) { return element<T>(tensor, i); });
}

template <float (*Widen)(uint16_t)>
void classify_half(const Tensor& tensor, const Rows& rows, const LabelList& labels, Bytes& out) {
  classify_rows(rows, labels, out, [&](uint64_t i) { return Widen(element<uint16_t>(tensor, i)); });
}

void classify(const Tensor& tensor, const Rows& rows, const LabelList& labels, Bytes& out) {
  switch (tensor.type) {
    case DataType::kUint8:
      return classify_as<uint8_t>(tensor, rows, labels, out);
    case DataType::kUint16:
      return classify_as<uint16_t>(tensor, rows, labels, out);
    case DataType::kUint32:
      return classify_as<uint32_t>(tensor, rows, labels, out);
    case DataType::kUint64:
      return classify_as<uint64_t>(tensor, rows, labels, out);
    case DataType::kInt8:
      return classify_as<int8_t>(tensor, rows, labels, out);
    case DataType::kInt16:
      return classify_as<int16_t>(tensor, rows, labels, out);
    case DataType::kInt32:
      return classify_as<int32_t>(tensor, rows, labels, out);
    case DataType::kInt64:
      return classify_as<int64_t>(tensor, rows, labels, out);
    case DataType::kFp16:
      return classify_half<fp16_to_float>(tensor, rows, labels, out);
    case DataType::kBf16:
      return classify_half<bf16_to_float>(tensor, rows, labels, out);
    case DataType::kFp32:
      return classify_as<float>(tensor, rows, labels, out);
    case DataType::kFp64:
      return classify_as<double>(tensor, rows, labels, out);
    case DataType::kBool:
    case DataType::kBytes:
      break;  // refused before the run
  }
}

Tensor* find_output(InferResult& result, const std::string& name) {
  const auto found = std::ranges::find(result.outputs, name, &Tensor::name);
  return found == result.outputs.end() ? nullptr : &*found;
}

}  // namespace

bool can_classify(DataType type) {
  return type != DataType::kBytes && type != DataType::kBool;
}

uint64_t classified_bytes(const InferRequest& request, const InferResult& result,
                          const ModelConfig& config) {
  uint64_t bytes = 0;
  for (const RequestedOutput& wanted : request.outputs) {
    if (wanted.classification == 0) continue;
    const auto found = std::ranges::find(result.outputs, wanted.name, &Tensor::name);
    if (found == result.outputs.end()) continue;
    const Rows rows = rows_of(*found, wanted.classification, config.batches());
    bytes += rows.count * rows.classes * (kMostTextBytes + labels_of(config, wanted.name).longest);
  }
  return bytes;
}

void classify_outputs(const InferRequest& request, InferResult& result, const ModelConfig& config) {
  for (const RequestedOutput& wanted : request.outputs) {
    Tensor* output = wanted.classification == 0 ? nullptr : find_output(result, wanted.name);
    if (output == nullptr || !can_classify(output->type)) continue;
    const Rows rows = rows_of(*output, wanted.classification, config.batches());
    auto text = std::make_shared<Bytes>();
    classify(*output, rows, labels_of(config, wanted.name), *text);
    output->type = DataType::kBytes;
    output->shape = {static_cast<int64_t>(rows.classes)};
    if (config.batches())
      output->shape.insert(output->shape.begin(), static_cast<int64_t>(rows.count));
    output->data = *text;
    result.storage.push_back(std::move(text));
  }
}

}  // namespace baton::service
