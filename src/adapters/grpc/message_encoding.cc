#include "adapters/grpc/message_encoding.h"

#include <array>
#include <memory>
#include <span>
#include <utility>

#include "protocol/compression/expand.h"
#include "protocol/compression/zlib_stream.h"

namespace baton::adapters::grpc_api {

using protocol::compression::encoding_name;
using protocol::compression::ExpandError;
using protocol::grpc_wire::MessagePart;
using protocol::grpc_wire::Metadata;

namespace {

constexpr std::array kOffered = {Encoding::kGzip, Encoding::kDeflate};

Encoding offered_encoding(std::string_view name) {
  for (Encoding encoding : kOffered) {
    if (name == encoding_name(encoding)) return encoding;
  }
  return Encoding::kIdentity;
}

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool lists(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const size_t end = names.find(',');
    if (trim(names.substr(0, end)) == name) return true;
    names.remove_prefix(end == std::string_view::npos ? names.size() : end + 1);
  }
  return false;
}

}  // namespace

std::vector<std::string> offered_encodings() {
  std::vector<std::string> names;
  for (Encoding encoding : kOffered) names.emplace_back(encoding_name(encoding));
  return names;
}

Encoding message_encoding(const Metadata& metadata) {
  const auto name = metadata.find("grpc-encoding");
  return name ? offered_encoding(*name) : Encoding::kIdentity;
}

Encoding answer_encoding(const Metadata& metadata) {
  const Encoding encoding = message_encoding(metadata);
  if (encoding == Encoding::kIdentity) return encoding;
  const auto accepted = metadata.find("grpc-accept-encoding");
  return accepted && lists(*accepted, encoding_name(encoding)) ? encoding : Encoding::kIdentity;
}

Result<std::string, Refusal> expand_message(Encoding encoding, std::string_view message,
                                            uint64_t limit) {
  auto text = protocol::compression::expand_text(encoding, message, limit);
  if (text.has_value()) return *std::move(text);
  const std::string name(encoding_name(encoding));
  switch (text.error()) {
    case ExpandError::kTooLarge:
      return fail(Refusal{EndReason::kTooLarge,
                          "the compressed message expands beyond " + std::to_string(limit) +
                              " bytes, the limit of messages to this method",
                          {}});
    case ExpandError::kCut:
      return fail(Refusal{
          EndReason::kInvalid, "the compressed message ends within its " + name + " stream", {}});
    case ExpandError::kBroken:
      break;
  }
  return fail(Refusal{EndReason::kInvalid, "the compressed message is not valid " + name, {}});
}

std::optional<MessagePart> pack_message(Encoding encoding, const std::vector<MessagePart>& parts) {
  struct Packed {
    std::string text;
    std::vector<Storage> kept;
  };
  const auto packed = std::make_shared<Packed>();
  std::vector<std::span<const std::byte>> pieces;
  pieces.reserve(2 * parts.size());
  for (const MessagePart& part : parts) {
    if (!part.text.empty()) pieces.push_back(std::as_bytes(std::span(part.text)));
    if (!part.view.empty()) pieces.push_back(std::as_bytes(part.view));
    if (part.keep != nullptr) packed->kept.push_back(part.keep);
  }
  auto text = protocol::compression::compress(encoding, pieces);
  if (!text) return std::nullopt;
  packed->text = *std::move(text);
  MessagePart whole;
  whole.view = packed->text;
  whole.keep = packed;
  return whole;
}

}  // namespace baton::adapters::grpc_api
