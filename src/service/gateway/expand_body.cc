#include "service/gateway/expand_body.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>

#include "protocol/compression/zlib_stream.h"
#include "protocol/http1/body_buffer.h"

namespace baton::service {

using protocol::compression::Encoding;
using protocol::compression::Inflater;
using protocol::http1::BodyBuffer;
using protocol::http1::HttpRequest;

namespace {

constexpr size_t kScratch = 16 << 10;
// JSON of numbers becomes 3 to 4 times as large; what grows beyond this is counted first.
constexpr uint64_t kUsualRatio = 4;

struct Stream {
  std::string_view body;
  Encoding encoding;
  [[nodiscard]] std::string name() const {
    return std::string(protocol::compression::encoding_name(encoding));
  }
};

std::unexpected<Refusal> too_large(uint64_t limit) {
  return fail(
      Refusal{EndReason::kTooLarge,
              "the compressed body expands beyond limits.body, " + std::to_string(limit) + " bytes",
              {}});
}

// `room()` gives where the next bytes go, or nothing to end with too_large(); `commit()` takes
// them.
template <class Room, class Commit>
Result<void, Refusal> run(const Stream& stream, Room room, Commit commit, uint64_t limit) {
  Inflater inflater(stream.encoding);
  std::string_view left = stream.body;
  while (true) {
    const std::span<char> free = room();
    if (free.empty()) return too_large(limit);
    const auto step = inflater.step(left, free);
    if (!step) {
      return fail(Refusal{EndReason::kInvalid, "the body is not valid " + stream.name(), {}});
    }
    commit(step->made);
    left.remove_prefix(step->taken);
    if (left.empty() && step->made < free.size()) break;
  }
  if (inflater.complete()) return {};
  return fail(
      Refusal{EndReason::kInvalid, "the body ends within its " + stream.name() + " stream", {}});
}

Result<void, Refusal> expand(const Stream& stream, BodyBuffer& buffer, uint64_t limit) {
  // One byte beyond the limit tells a body that ends there from one that goes on.
  const size_t most = limit + 1;
  const auto room = [&]() -> std::span<char> {
    if (buffer.room().empty() && buffer.size() < most &&
        !buffer.grow(std::min(buffer.size() + kScratch, most), most)) {
      return {};
    }
    return buffer.room().first(std::min(buffer.room().size(), most - buffer.size()));
  };
  BATON_TRY(run(stream, room, [&](size_t made) { buffer.commit(made); }, limit));
  if (buffer.size() > limit) return too_large(limit);
  return {};
}

// Error: not expandable, or not within the limit.
Result<void, Refusal> check_size(const Stream& stream, uint64_t limit) {
  std::array<char, kScratch> scratch{};
  uint64_t size = 0;
  const auto room = [&] { return size > limit ? std::span<char>() : std::span<char>(scratch); };
  BATON_TRY(run(stream, room, [&](size_t made) { size += made; }, limit));
  if (size > limit) return too_large(limit);
  return {};
}

}  // namespace

Result<Encoding, Refusal> content_encoding(const HttpRequest& request) {
  const auto value = request.header("content-encoding");
  if (!value) return Encoding::kIdentity;
  const auto encoding = protocol::compression::parse_content_encoding(*value);
  if (encoding) return *encoding;
  return fail(Refusal{EndReason::kUnsupported,
                      "Content-Encoding \"" + std::string(value->substr(0, 64)) +
                          "\" is not offered; send gzip, deflate or the body as it is",
                      {}});
}

Result<void, Refusal> expand_body(HttpRequest& request, Encoding encoding, uint64_t limit) {
  if (encoding == Encoding::kIdentity) return {};
  const Stream stream{request.body, encoding};
  auto buffer = std::make_shared<BodyBuffer>();
  const uint64_t usual = std::min(limit, kUsualRatio * stream.body.size() + kScratch);
  auto expanded = expand(stream, *buffer, usual);
  const bool grows = !expanded.has_value() && expanded.error().reason == EndReason::kTooLarge;
  if (grows && usual < limit) {
    // Memory only once it is known to fit: what a body asks for in vain is not even taken.
    buffer = std::make_shared<BodyBuffer>();
    BATON_TRY(check_size(stream, limit));
    expanded = expand(stream, *buffer, limit);
  }
  BATON_TRY(std::move(expanded));
  request.body = buffer->finish();
  request.body_storage = std::move(buffer);
  return {};
}

}  // namespace baton::service
