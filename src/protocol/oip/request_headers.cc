#include "protocol/oip/request_headers.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "domain/request_parameters.h"

namespace baton::protocol::oip {
namespace {

Result<void, Refusal> apply_timeout(std::string_view text, RequestContext& context) {
  uint64_t ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (error != std::errc() || end != text.data() + text.size() || ms == 0 ||
      ms > static_cast<uint64_t>(kMostTimeout.ms())) {
    return fail(Refusal{EndReason::kInvalid,
                        "X-Request-Timeout-Ms is an integer from 1 to 86400000 milliseconds",
                        {}});
  }
  context.deadline =
      std::min(context.deadline, context.arrival + Duration::ms(static_cast<int64_t>(ms)));
  return {};
}

Result<void, Refusal> apply_class(std::string_view text, RequestContext& context) {
  const auto parsed = parse_traffic_class(text);
  if (!parsed) {
    return fail(Refusal{
        EndReason::kInvalid, "X-Request-Class is one of interactive, batch, experimental", {}});
  }
  context.traffic_class = *parsed;
  return {};
}

}  // namespace

Result<void, Refusal> refuse_repeated_headers(HeaderLookup find) {
  for (std::string_view name : kSingleHeaders) {
    if (find(name).count < 2) continue;
    return fail(
        Refusal{EndReason::kInvalid, "the header " + std::string(name) + " stands twice", {}});
  }
  return {};
}

Result<void, Refusal> apply_request_headers(HeaderLookup find, RequestContext& context) {
  if (const FoundHeader timeout = find("x-request-timeout-ms"); timeout.count > 0) {
    BATON_TRY(apply_timeout(timeout.value, context));
  }
  if (const FoundHeader name = find("x-request-class"); name.count > 0) {
    BATON_TRY(apply_class(name.value, context));
  }
  return {};
}

}  // namespace baton::protocol::oip
