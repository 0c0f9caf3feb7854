#include "domain/request_parameters.h"

#include <algorithm>

namespace baton {

RequestParameter request_parameter(std::string_view key) {
  if (key == "timeout") return RequestParameter::kTimeout;
  if (key == "priority") return RequestParameter::kPriority;
  if (key == "sequence_id") return RequestParameter::kSequenceId;
  if (key == "sequence_start") return RequestParameter::kSequenceStart;
  if (key == "sequence_end") return RequestParameter::kSequenceEnd;
  if (key == "triton_enable_empty_final_response") return RequestParameter::kOnlyStream;
  return key.starts_with("triton_") ? RequestParameter::kReserved : RequestParameter::kUnknown;
}

Result<void, Refusal> apply_parameters(const SchedulingParameters& parameters,
                                       RequestContext& context) {
  const uint64_t us = parameters.timeout_us.value_or(0);
  if (us > static_cast<uint64_t>(kMostTimeout.us())) {
    return fail(Refusal{
        EndReason::kInvalid, "the parameter \"timeout\" is at most 86400000000 microseconds", {}});
  }
  if (us != 0) {
    const auto timeout = Duration::us(static_cast<int64_t>(us));
    context.deadline = std::min(context.deadline, context.arrival + timeout);
  }
  const uint64_t priority = parameters.priority.value_or(0);
  if (priority > UINT32_MAX) {
    return fail(Refusal{
        EndReason::kInvalid, "the parameter \"priority\" is an integer from 0 to 4294967295", {}});
  }
  context.priority = static_cast<uint32_t>(priority);
  return {};
}

}  // namespace baton
