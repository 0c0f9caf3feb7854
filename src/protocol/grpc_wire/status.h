#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace baton::protocol::grpc_wire {

// The numbers of gRPC's statuses.
enum class StatusCode : uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// How a call ends.
struct Status {
  StatusCode code = StatusCode::kOk;
  std::string message{};                                        // UTF-8; encoded for the wire
  std::vector<std::pair<std::string, std::string>> metadata{};  // trailing; names in lower case
  [[nodiscard]] bool ok() const { return code == StatusCode::kOk; }
};

}  // namespace baton::protocol::grpc_wire
