#pragma once
// Internal to this room: execution providers of a session.

#include <span>
#include <string>

#include "adapters/onnx/ort_handles.h"
#include "domain/execution_provider.h"

namespace baton::adapters::onnx {

// Adds a provider to the options of a session that is not made yet. False with `error` when this
// build of ONNX Runtime has none, its libraries are missing, or an option is wrong.
[[nodiscard]] bool add_provider(const OrtApi& api, OrtSessionOptions& session,
                                const ExecutionProvider& provider, std::string& error);

}  // namespace baton::adapters::onnx
