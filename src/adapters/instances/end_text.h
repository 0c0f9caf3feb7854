#pragma once

#include <string>

#include "domain/end_reason.h"

namespace baton::adapters {

// What a client is told whose call left an engine without a result.
[[nodiscard]] std::string end_text(EndReason reason);

}  // namespace baton::adapters
