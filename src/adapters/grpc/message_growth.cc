#include "adapters/grpc/message_growth.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <string>

#include "baton_inference.pb.h"

namespace baton::adapters::grpc_api {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using inference::InferTensorContents;
using inference::ModelInferRequest;

constexpr uint32_t kMostEntries = 4096;
constexpr uint64_t kMostGrowth = 32;
constexpr uint64_t kFreeGrowthBytes = 4 << 20;

// Of one element, fields growing by doubling: a string with its entry in the list and in the
// arena's; a number; what a byte on the wire can become at most.
constexpr uint64_t kStringBytes = 72;
constexpr uint64_t kNumberGrowth = 16;

class GrowthCounter {
 public:
  explicit GrowthCounter(std::string_view message)
      : in_(reinterpret_cast<const uint8_t*>(message.data()), static_cast<int>(message.size())) {}

  void count() {
    each_field([&](int field, uint32_t tag) {
      ++entries_;
      const bool input = field == ModelInferRequest::kInputsFieldNumber;
      const bool output = field == ModelInferRequest::kOutputsFieldNumber;
      if ((!input && !output) || !is_nested(tag)) return false;
      using Input = ModelInferRequest::InferInputTensor;
      using Output = ModelInferRequest::InferRequestedOutputTensor;
      return within([&] {
        each_field([&](int inner, uint32_t inner_tag) {
          const int parameters =
              input ? int{Input::kParametersFieldNumber} : int{Output::kParametersFieldNumber};
          if (inner == parameters) ++entries_;
          if (!input || inner != Input::kContentsFieldNumber || !is_nested(inner_tag)) return false;
          return within([&] { count_contents(); });
        });
      });
    });
  }

  [[nodiscard]] bool too_many() const { return entries_ > kMostEntries; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  static bool is_nested(uint32_t tag) {
    return WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  }

  // `take` uses a field's bytes, or says false and they are skipped. Ends early when there are too
  // many entries, and at what is malformed.
  template <class Take>
  void each_field(Take take) {
    while (const uint32_t tag = in_.ReadTag()) {
      if (!take(WireFormatLite::GetTagFieldNumber(tag), tag) &&
          !WireFormatLite::SkipField(&in_, tag)) {
        return;
      }
      if (too_many()) return;
    }
  }

  template <class Read>
  bool within(Read read) {
    uint32_t length = 0;
    if (!in_.ReadVarint32(&length)) return true;
    const auto limit = in_.PushLimit(static_cast<int>(std::min<uint32_t>(length, INT32_MAX)));
    read();
    in_.Skip(in_.BytesUntilLimit());
    in_.PopLimit(limit);
    return true;
  }

  void count_contents() {
    each_field([&](int field, uint32_t tag) {
      uint32_t length = 0;
      if (!is_nested(tag)) {
        bytes_ += kNumberGrowth;
        return false;
      }
      if (!in_.ReadVarint32(&length)) return true;
      const bool string = field == InferTensorContents::kBytesContentsFieldNumber;
      const bool exact = field == InferTensorContents::kFp32ContentsFieldNumber ||
                         field == InferTensorContents::kFp64ContentsFieldNumber ||
                         field == InferTensorContents::kBoolContentsFieldNumber;
      bytes_ += string ? kStringBytes + length : exact ? length : length * kNumberGrowth;
      in_.Skip(static_cast<int>(std::min<uint32_t>(length, INT32_MAX)));
      return true;
    });
  }

  CodedInputStream in_;
  uint32_t entries_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace

Result<void, Refusal> check_growth(std::string_view message, uint64_t memory_max) {
  GrowthCounter counter(message);
  counter.count();
  if (counter.too_many()) {
    return fail(Refusal{
        EndReason::kTooLarge, "the request has more than 4096 inputs, outputs and parameters", {}});
  }
  const bool grows = counter.bytes() > kMostGrowth * message.size() + kFreeGrowthBytes;
  if (grows || counter.bytes() > std::max(memory_max, kFreeGrowthBytes)) {
    return fail(Refusal{EndReason::kTooLarge,
                        "the message's typed contents become too large in memory; send "
                        "raw_input_contents",
                        {}});
  }
  return {};
}

}  // namespace baton::adapters::grpc_api
