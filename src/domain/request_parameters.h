#pragma once
// The parameters of a request, whatever protocol carries them: which there are and what they may
// say.

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "domain/end_reason.h"
#include "domain/request.h"

namespace baton {

// Longer is a mistake.
inline constexpr Duration kMostTimeout = Duration::s(86'400);

enum class RequestParameter : uint8_t {
  kUnknown,  // ignored, as the protocol asks
  kTimeout,
  kPriority,
  kSequenceId,
  kSequenceStart,
  kSequenceEnd,
  kOnlyStream,  // without effect on a call that has one answer
  kReserved,    // refused
};
[[nodiscard]] RequestParameter request_parameter(std::string_view key);

// Parameters of the request that bear on scheduling.
struct SchedulingParameters {
  std::optional<uint64_t> timeout_us;
  std::optional<uint64_t> priority;
};

// Into the context, whose arrival is set: a timeout only ever shortens the deadline, 0 says
// nothing. Error: kInvalid.
[[nodiscard]] Result<void, Refusal> apply_parameters(const SchedulingParameters& parameters,
                                                     RequestContext& context);

}  // namespace baton
