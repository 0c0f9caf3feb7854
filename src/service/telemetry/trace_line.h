#pragma once

#include <string>
#include <string_view>

#include "domain/request.h"
#include "ports/engine.h"

namespace baton::service {

// One request's stages. What did not happen is zero.
struct RequestTrace {
  const RequestContext& context;
  std::string_view model;
  int64_t version = 0;
  EndReason reason = EndReason::kOk;
  Instant started;  // when the gateway took the request
  ports::CallTimings timings;
  Instant ended;
};

// As one JSON object that trace summaries of Triton read; times in ns of the process's clock.
[[nodiscard]] std::string trace_line(const RequestTrace& trace);

}  // namespace baton::service
