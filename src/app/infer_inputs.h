#pragma once

#include <string>

#include "app/infer_command.h"
#include "base/result.h"
#include "domain/request.h"
#include "protocol/oip/client.h"

namespace baton::app {

// The text that --json names. Error: a sentence.
[[nodiscard]] Result<std::string, std::string> json_text(const std::string& argument);

// The inputs that the options describe, for a model of these metadata: named arrays of `json`,
// then .npy files, then made-up ones for the rest. Error: a sentence.
[[nodiscard]] Result<InferRequest, std::string> gather_inputs(
    const InferOptions& options, const std::string& json, protocol::oip::ModelMetadata metadata);

}  // namespace baton::app
