#include "protocol/oip/header_memo.h"

#include <cstring>

namespace baton::protocol::oip {
namespace {

// Eight bytes at a time. Who finds two headers with one hash gains nothing but that they displace
// each other: what is recalled is compared as a whole.
uint64_t hash_of(std::string_view text) {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio
  uint64_t hash = text.size();
  const auto mix = [&](uint64_t word) {
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> 32;
  };
  uint64_t word = 0;
  size_t i = 0;
  for (; i + sizeof word <= text.size(); i += sizeof word) {
    std::memcpy(&word, text.data() + i, sizeof word);
    mix(word);
  }
  word = 0;
  std::memcpy(&word, text.data() + i, text.size() - i);
  mix(word);
  return hash;
}

}  // namespace

Result<DecodedRequest, Refusal> HeaderMemo::decode(const RequestBody& body,
                                                   json::JsonParser& parser) {
  const uint64_t length = json_bytes(body);
  // Without anything behind it, a header holds its data itself, or stands alone.
  if (length == 0 || length > kMostText || length == body.bytes.size()) {
    return decode_infer_request(body, parser);
  }
  const std::string_view text = body.bytes.substr(0, length);
  const uint64_t hash = hash_of(text);
  Slot& slot = slots_[hash % kSlots];
  if (slot.text == text) {
    auto recalled = recall(slot, body);
    // Where the data is not what the header says, the decoder says what is wrong.
    if (recalled.has_value()) return recalled;
  }
  auto decoded = decode_infer_request(body, parser);
  // With a second storage, some of its data was JSON.
  if (decoded.has_value() && slot.seen == hash && decoded->request.storage.size() == 1) {
    keep(slot, text, *decoded);
  }
  slot.seen = hash;
  return decoded;
}

Result<DecodedRequest, Refusal> HeaderMemo::recall(const Slot& slot, const RequestBody& body) {
  std::string_view left = body.bytes.substr(slot.text.size());
  Result<DecodedRequest, Refusal> recalled(slot.decoded);
  InferRequest& request = recalled->request;
  for (size_t i = 0; i < slot.sizes.size(); ++i) {
    Tensor& tensor = request.inputs[i];
    if (tensor.place) continue;
    if (slot.sizes[i] > left.size()) return fail(Refusal{});
    tensor.data = std::as_bytes(std::span(left.substr(0, slot.sizes[i])));
    left.remove_prefix(slot.sizes[i]);
    // Of every other type the size was checked when the header was read.
    if (tensor.type == DataType::kBytes &&
        !is_valid_bytes_tensor(tensor.data, *element_count(tensor.shape))) {
      return fail(Refusal{});
    }
  }
  if (!left.empty()) return fail(Refusal{});
  request.context.bytes = body.bytes.size();
  request.storage.push_back(body.storage);
  return recalled;
}

void HeaderMemo::keep(Slot& slot, std::string_view text, const DecodedRequest& decoded) {
  slot.text = text;
  slot.decoded = decoded;
  slot.decoded.request.storage.clear();
  slot.sizes.clear();
  for (Tensor& tensor : slot.decoded.request.inputs) {
    slot.sizes.push_back(tensor.data.size());
    tensor.data = {};
  }
}

}  // namespace baton::protocol::oip
