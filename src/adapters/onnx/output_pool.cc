#include "adapters/onnx/output_pool.h"

#include <algorithm>

namespace baton::adapters::onnx {
namespace {

constexpr size_t kMostFree = 8;
constexpr size_t kMostBytes = 256 * 1024;  // of one output; larger ones come from the arena

}  // namespace

bool has_known_shape(const TensorSpec& spec, bool batches) {
  if (spec.type == DataType::kBytes) return false;
  const size_t lead = batches ? 1 : 0;
  if (spec.dims.size() < lead || (batches && spec.dims.front() != -1)) return false;
  return std::ranges::none_of(spec.dims.begin() + static_cast<std::ptrdiff_t>(lead),
                              spec.dims.end(), [](int64_t dim) { return dim <= 0; });
}

std::unique_ptr<OutputSet> OutputPool::take(const std::vector<const TensorSpec*>& specs,
                                            uint64_t rows) {
  const std::lock_guard lock(mutex_);
  for (auto entry = free_.rbegin(); entry != free_.rend(); ++entry) {
    if ((*entry)->rows != rows || (*entry)->specs != specs) continue;
    std::unique_ptr<OutputSet> set = std::move(*entry);
    free_.erase(std::next(entry).base());
    return set;
  }
  return nullptr;
}

std::unique_ptr<OutputSet> OutputPool::make(const std::vector<const TensorSpec*>& specs,
                                            uint64_t rows, std::string& error) {
  auto set = std::make_unique<OutputSet>();
  set->number = ++made_;
  set->rows = rows;
  set->specs = specs;
  for (const TensorSpec* spec : specs) {
    Shape shape = spec->dims;
    if (!shape.empty() && shape.front() < 0) shape.front() = static_cast<int64_t>(rows);
    const uint64_t bytes = element_count(shape).value_or(kMostBytes) * element_size(spec->type);
    if (bytes > kMostBytes) return nullptr;
    auto& buffer = set->buffers.emplace_back(bytes);
    auto value = ort_make<OrtValue>(
        api_, api_.ReleaseValue,
        [&](OrtValue** out) {
          return api_.CreateTensorWithDataAsOrtValue(cpu_, buffer.data(), buffer.size(),
                                                     shape.data(), shape.size(),
                                                     to_onnx(spec->type), out);
        },
        error);
    if (!value) return nullptr;
    set->values.push_back(std::move(value));
    set->tensors.push_back(
        {.name = spec->name, .type = spec->type, .shape = std::move(shape), .data = buffer});
  }
  return set;
}

Storage OutputPool::lease(std::unique_ptr<OutputSet> set) {
  const auto end = [pool = shared_from_this()](OutputSet* ended) {
    pool->give_back(std::unique_ptr<OutputSet>(ended));
  };
  return {set.release(), end};
}

void OutputPool::give_back(std::unique_ptr<OutputSet> set) {
  std::unique_ptr<OutputSet> dropped;  // freed when the lock is open
  const std::lock_guard lock(mutex_);
  if (free_.size() >= kMostFree) {
    dropped = std::move(free_.front());
    free_.erase(free_.begin());
  }
  free_.push_back(std::move(set));
}

}  // namespace baton::adapters::onnx
