#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace baton::app {

// GET from a baton on this machine or network, for commands: one connection, blocking, bounded by
// `timeout`. `host` is a numeric address; without a key
// when that is empty. Error: a sentence.
[[nodiscard]] Result<std::string, std::string> http_get(const std::string& host, uint16_t port,
                                                        const std::string& target, Duration timeout,
                                                        const std::string& api_key = "");

}  // namespace baton::app
