#pragma once

#include "domain/decision_setup.h"
#include "service/batching/model_dispatcher.h"

namespace baton::service {

// A dispatcher's options as the decision log keeps them, and back. What the options gain must be
// kept too: both functions name every field, so that they do not compile without it.
[[nodiscard]] DispatcherSetup setup_of(const DispatcherOptions& options);
[[nodiscard]] DispatcherOptions options_of(const DispatcherSetup& setup);

}  // namespace baton::service
