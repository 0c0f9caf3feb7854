#include "service/gateway/expand_body.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>

#include "protocol/compression/expand.h"
#include "protocol/http1/body_buffer.h"

namespace baton::service {

using protocol::compression::Encoding;
using protocol::compression::expand_into;
using protocol::compression::ExpandError;
using protocol::compression::kExpandScratch;
using protocol::compression::kUsualRatio;
using protocol::http1::BodyBuffer;
using protocol::http1::HttpRequest;

namespace {

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

Result<void, Refusal> refusal_of(Result<void, ExpandError> result, const Stream& stream,
                                 uint64_t limit) {
  if (result.has_value()) return {};
  switch (result.error()) {
    case ExpandError::kTooLarge:
      return too_large(limit);
    case ExpandError::kCut:
      return fail(Refusal{
          EndReason::kInvalid, "the body ends within its " + stream.name() + " stream", {}});
    case ExpandError::kBroken:
      break;
  }
  return fail(Refusal{EndReason::kInvalid, "the body is not valid " + stream.name(), {}});
}

Result<void, Refusal> expand(const Stream& stream, BodyBuffer& buffer, uint64_t limit) {
  // One byte beyond the limit tells a body that ends there from one that goes on.
  const size_t most = limit + 1;
  const auto room = [&]() -> std::span<char> {
    if (buffer.room().empty() && buffer.size() < most &&
        !buffer.grow(std::min(buffer.size() + kExpandScratch, most), most)) {
      return {};
    }
    return buffer.room().first(std::min(buffer.room().size(), most - buffer.size()));
  };
  const auto commit = [&](size_t made) { buffer.commit(made); };
  BATON_TRY(refusal_of(expand_into(stream.encoding, stream.body, room, commit), stream, limit));
  if (buffer.size() > limit) return too_large(limit);
  return {};
}

// Error: not expandable, or not within the limit.
Result<void, Refusal> check_size(const Stream& stream, uint64_t limit) {
  const auto size = protocol::compression::expanded_size(stream.encoding, stream.body, limit);
  if (size.has_value()) return {};
  return refusal_of(fail(size.error()), stream, limit);
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
  const uint64_t usual = std::min(limit, kUsualRatio * stream.body.size() + kExpandScratch);
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
