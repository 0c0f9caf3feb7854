#pragma once
// Remembers what JSON headers of inference requests said: clients send the same one again and
// again, and reading it costs more than running a small model.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/oip/infer_codec.h"

namespace baton::protocol::oip {

// decode_infer_request with a memory. One thread. Holds at most kSlots headers of at most
// kMostText bytes each, with what was read from them: about a MiB when all are as large.
class HeaderMemo {
 public:
  static constexpr size_t kSlots = 64;
  static constexpr size_t kMostText = 4096;

  // As decode_infer_request, to the byte. A header is kept once its slot sees it twice in a row,
  // and only when all of its data stands behind it or in shared memory.
  [[nodiscard]] Result<DecodedRequest, Refusal> decode(const RequestBody& body,
                                                       json::JsonParser& parser);

 private:
  struct Slot {
    uint64_t seen = 0;  // hash of the header before this one
    std::string text;   // of the header that is kept; empty: none
    DecodedRequest decoded;
    std::vector<uint64_t> sizes;  // of the inputs' data
  };
  [[nodiscard]] static Result<DecodedRequest, Refusal> recall(const Slot& slot,
                                                              const RequestBody& body);
  static void keep(Slot& slot, std::string_view text, const DecodedRequest& decoded);

  std::array<Slot, kSlots> slots_;  // by hash
};

}  // namespace baton::protocol::oip
