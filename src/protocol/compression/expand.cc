#include "protocol/compression/expand.h"

#include <algorithm>
#include <array>

#include "protocol/compression/zlib_stream.h"

namespace baton::protocol::compression {
namespace {

// `out` has room for `limit` bytes and takes none beyond.
Result<void, ExpandError> append(Encoding encoding, std::string_view body, uint64_t limit,
                                 std::string& out) {
  std::array<char, kExpandScratch> scratch{};
  bool beyond = false;
  const auto room = [&] { return beyond ? std::span<char>() : std::span<char>(scratch); };
  const auto commit = [&](size_t made) {
    beyond = made > limit - out.size();
    if (!beyond) out.append(scratch.data(), made);
  };
  BATON_TRY(expand_into(encoding, body, room, commit));
  if (beyond) return fail(ExpandError::kTooLarge);
  return {};
}

}  // namespace

Result<void, ExpandError> expand_into(Encoding encoding, std::string_view body,
                                      FunctionRef<std::span<char>()> room,
                                      FunctionRef<void(size_t)> commit) {
  Inflater inflater(encoding);
  while (true) {
    const std::span<char> free = room();
    if (free.empty()) return fail(ExpandError::kTooLarge);
    const auto step = inflater.step(body, free);
    if (!step) return fail(ExpandError::kBroken);
    commit(step->made);
    body.remove_prefix(step->taken);
    if (body.empty() && step->made < free.size()) break;
  }
  if (!inflater.complete()) return fail(ExpandError::kCut);
  return {};
}

Result<uint64_t, ExpandError> expanded_size(Encoding encoding, std::string_view body,
                                            uint64_t limit) {
  std::array<char, kExpandScratch> scratch{};
  uint64_t size = 0;
  const auto room = [&] { return size > limit ? std::span<char>() : std::span<char>(scratch); };
  BATON_TRY(expand_into(encoding, body, room, [&](size_t made) { size += made; }));
  if (size > limit) return fail(ExpandError::kTooLarge);
  return size;
}

Result<std::string, ExpandError> expand_text(Encoding encoding, std::string_view body,
                                             uint64_t limit) {
  const uint64_t usual = std::min(limit, kUsualRatio * body.size() + kExpandScratch);
  std::string out;
  out.reserve(usual);
  auto expanded = append(encoding, body, usual, out);
  const bool grows = !expanded.has_value() && expanded.error() == ExpandError::kTooLarge;
  if (grows && usual < limit) {
    out = {};
    BATON_ASSIGN(const uint64_t size, expanded_size(encoding, body, limit));
    out.reserve(size);
    expanded = append(encoding, body, size, out);
  }
  BATON_TRY(std::move(expanded));
  return out;
}

}  // namespace baton::protocol::compression
