#include "service/gateway/shared_tensors.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace baton::service {
namespace {

std::unexpected<Refusal> invalid(std::string message) {
  return fail(Refusal{EndReason::kInvalid, std::move(message), {}});
}

Result<void, Refusal> check_elements(const Tensor& tensor) {
  const std::string label = "input \"" + tensor.name + "\"";
  const uint64_t count = element_count(tensor.shape).value_or(0);
  const size_t size = element_size(tensor.type);
  if (size == 0) {
    if (is_valid_bytes_tensor(tensor.data, count)) return {};
    return invalid(label + " does not hold the " + std::to_string(count) +
                   " BYTES elements of its shape " + shape_text(tensor.shape));
  }
  if (tensor.data.size() == count * size) return {};
  return invalid(label + " holds " + std::to_string(tensor.data.size()) + " bytes of " +
                 std::string(data_type_name(tensor.type)) + ", its shape " +
                 shape_text(tensor.shape) + " needs " + std::to_string(count * size));
}

std::unexpected<Refusal> within(std::string label, Refusal refusal) {
  refusal.message = std::move(label) + ": " + refusal.message;
  return fail(std::move(refusal));
}

}  // namespace

uint64_t shared_input_bytes(const InferRequest& request) {
  uint64_t bytes = 0;
  for (const Tensor& input : request.inputs) {
    if (input.place == nullptr || input.data.data() != nullptr) continue;
    bytes = input.place->bytes > UINT64_MAX - bytes ? UINT64_MAX : bytes + input.place->bytes;
  }
  return bytes;
}

uint64_t shared_output_bytes(const InferRequest& request, const InferResult& result) {
  uint64_t bytes = 0;
  for (const RequestedOutput& wanted : request.outputs) {
    if (wanted.place == nullptr) continue;
    const auto output = std::ranges::find(result.outputs, wanted.name, &Tensor::name);
    if (output != result.outputs.end()) bytes += output->data.size();
  }
  return bytes;
}

bool uses_shared_memory(const InferRequest& request) {
  const auto is_shared = [](const auto& tensor) { return tensor.place != nullptr; };
  return std::ranges::any_of(request.inputs, is_shared) ||
         std::ranges::any_of(request.outputs, is_shared);
}

Result<void, Refusal> read_shared_inputs(InferRequest& request, const ports::SharedMemory& memory) {
  for (Tensor& input : request.inputs) {
    if (input.place == nullptr || input.data.data() != nullptr) continue;
    const std::string label = "input \"" + input.name + "\"";
    if (auto checked = memory.check(*input.place); !checked.has_value()) {
      return within(label, std::move(checked).error());
    }
    // One byte at least, so that an empty tensor counts as read.
    auto bytes =
        std::make_shared<std::vector<std::byte>>(std::max<uint64_t>(input.place->bytes, 1));
    input.data = std::span(*bytes).first(input.place->bytes);
    if (auto read = memory.read(*input.place, std::span(*bytes).first(input.place->bytes));
        !read.has_value()) {
      return within(label, std::move(read).error());
    }
    request.storage.push_back(std::move(bytes));
    BATON_TRY(check_elements(input));
  }
  return {};
}

Result<void, Refusal> write_shared_outputs(const InferRequest& request, InferResult& result,
                                           const ports::SharedMemory& memory) {
  for (const RequestedOutput& wanted : request.outputs) {
    if (wanted.place == nullptr) continue;
    const auto output = std::ranges::find(result.outputs, wanted.name, &Tensor::name);
    if (output == result.outputs.end()) continue;
    const std::string label = "output \"" + wanted.name + "\"";
    if (output->data.size() > wanted.place->bytes) {
      return invalid(label + " has " + std::to_string(output->data.size()) +
                     " bytes, its \"shared_memory_byte_size\" is " +
                     std::to_string(wanted.place->bytes));
    }
    if (auto written = memory.write(*wanted.place, output->data); !written.has_value()) {
      return within(label, std::move(written).error());
    }
    auto place = std::make_shared<MemoryPlace>(*wanted.place);
    place->bytes = output->data.size();
    output->place = std::move(place);
    output->data = {};
  }
  return {};
}

}  // namespace baton::service
