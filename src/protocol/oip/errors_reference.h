#pragma once

#include <string>
#include <string_view>

#include "domain/end_reason.h"

namespace baton::protocol::oip {

// The gRPC status of an end, by its name; two where it depends on whose deadline it was, the
// client's own last. Empty: does not occur over gRPC.
[[nodiscard]] std::string_view grpc_status_text(EndReason reason);
// docs/reference/errors.md.
[[nodiscard]] std::string errors_reference();

}  // namespace baton::protocol::oip
