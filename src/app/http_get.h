#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace baton::app {

// GET from a baton on this machine or network, for commands: one connection, blocking, bounded by
// `timeout`. `host` is a numeric address. Error: a sentence.
[[nodiscard]] Result<std::string, std::string> http_get(const std::string& host, uint16_t port,
                                                        const std::string& target,
                                                        Duration timeout);

}  // namespace baton::app
