#pragma once
// The headers of a request that bear on its scheduling: REST headers, and gRPC metadata of the same
// names.

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/function_ref.h"
#include "base/result.h"
#include "domain/end_reason.h"
#include "domain/request.h"

namespace baton::protocol::oip {

// Headers of which a second one would leave open which counts, names in lower case.
inline constexpr std::array<std::string_view, 5> kSingleHeaders = {
    "x-request-timeout-ms", "x-request-class", "traceparent", "authorization", "x-api-key"};

// How often a header stands, and its first value.
struct FoundHeader {
  size_t count = 0;
  std::string_view value;
};
using HeaderLookup = FunctionRef<FoundHeader(std::string_view name)>;

// Error: kInvalid, when one of kSingleHeaders stands twice.
[[nodiscard]] Result<void, Refusal> refuse_repeated_headers(HeaderLookup find);

// X-Request-Timeout-Ms and X-Request-Class into the context, whose arrival is set. Error: kInvalid.
[[nodiscard]] Result<void, Refusal> apply_request_headers(HeaderLookup find,
                                                          RequestContext& context);

}  // namespace baton::protocol::oip
