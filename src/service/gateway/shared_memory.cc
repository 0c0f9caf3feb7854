// The part of a request's way that its tensors in shared memory take.

#include <utility>

#include "service/gateway/live_call.h"
#include "service/gateway/memory_routes.h"
#include "service/gateway/shared_tensors.h"

namespace baton::service {

Result<bool, Refusal> Gateway::read_inputs(LiveCall& call, RequestPtr& given) {
  InferRequest& request = *given;
  if (!uses_shared_memory(request)) return false;
  if (ports_.shared_memory == nullptr) return fail(no_shared_memory());
  const uint64_t bytes = shared_input_bytes(request);
  if (bytes > options_.shared_input_bytes_max) {
    return fail(Refusal{EndReason::kTooLarge,
                        "the inputs in shared memory are larger than limits.body, " +
                            std::to_string(options_.shared_input_bytes_max) + " bytes",
                        {}});
  }
  request.context.bytes += bytes;  // a copy of them counts as if it had been sent
  if (bytes <= kMostCopiedOnLoop || !copying_.offered()) {
    BATON_TRY(read_shared_inputs(request, *ports_.shared_memory));
    return false;
  }
  BATON_TRY(reserve(call, request.context, 0));
  call.early_context = request.context;
  call.decoding = true;
  arm(call);
  call.work = copying_.start(
      [given, memory = ports_.shared_memory]() mutable -> Result<RequestPtr, Refusal> {
        BATON_TRY(read_shared_inputs(*given, *memory));
        return std::move(given);
      },
      [this, token = GatewayToken(call.token)](Result<RequestPtr, Refusal> read) {
        decoded(token, std::move(read));
      });
  return true;
}

Result<bool, Refusal> Gateway::write_outputs(LiveCall& call) {
  InferResult& result = call.outcome.result;
  const uint64_t bytes = shared_output_bytes(*call.request, result);
  if (bytes == 0 && !uses_shared_memory(*call.request)) return false;
  if (bytes <= kMostCopiedOnLoop || !copying_.offered()) {
    BATON_TRY(write_shared_outputs(*call.request, result, *ports_.shared_memory));
    return false;
  }
  call.rendering = true;
  // With its own share of the result: the call may end before the job does.
  call.work = copying_.start(
      [request = call.request, result,
       memory = ports_.shared_memory]() mutable -> Result<InferResult, Refusal> {
        BATON_TRY(write_shared_outputs(*request, result, *memory));
        return std::move(result);
      },
      [this, token = call.token](Result<InferResult, Refusal> written) {
        copied(token, std::move(written));
      });
  return true;
}

void Gateway::copied(uint64_t token, Result<InferResult, Refusal> result) {
  const auto found = calls_.find(token);
  if (found == calls_.end() || !found->second->rendering) return;
  LiveCall& call = *found->second;
  call.rendering = false;
  if (!result.has_value()) return refuse(call, std::move(result).error(), call.outcome.timings);
  call.outcome.result = *std::move(result);
  render(call);
}

}  // namespace baton::service
