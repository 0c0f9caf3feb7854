#pragma once
// Internal to this room: compressed messages.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/end_reason.h"
#include "protocol/compression/encoding.h"
#include "protocol/grpc_wire/metadata.h"
#include "protocol/grpc_wire/server_session.h"

namespace baton::adapters::grpc_api {

using protocol::compression::Encoding;

// Up to so many bytes of a compressed message, and of what it becomes, take a worker less than a
// millisecond; more are a job's. The same for what is to be compressed.
inline constexpr uint64_t kMostPackedOnWorker = 64 << 10;
inline constexpr uint64_t kMostExpandedOnWorker = 256 << 10;
// Smaller answers fit into a packet or two as they are.
inline constexpr uint64_t kLeastCompressedAnswer = 1400;

// What messages may be compressed with, as in grpc-encoding.
[[nodiscard]] std::vector<std::string> offered_encodings();
// Of a call's messages. What is not offered is kIdentity: the session has refused such a call.
[[nodiscard]] Encoding message_encoding(const protocol::grpc_wire::Metadata& metadata);
// Of its answers: as its messages, where the client takes that.
[[nodiscard]] Encoding answer_encoding(const protocol::grpc_wire::Metadata& metadata);

// Errors: kInvalid for what is no such stream, kTooLarge beyond `limit` bytes, for which no memory
// is taken. Any thread.
[[nodiscard]] Result<std::string, Refusal> expand_message(Encoding encoding,
                                                          std::string_view message, uint64_t limit);
// The parts as one compressed one, which keeps alive what they did: it stands for their bytes among
// the answers that wait. Nothing when it would not be smaller. Any thread.
[[nodiscard]] std::optional<protocol::grpc_wire::MessagePart> pack_message(
    Encoding encoding, const std::vector<protocol::grpc_wire::MessagePart>& parts);

}  // namespace baton::adapters::grpc_api
