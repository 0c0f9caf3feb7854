#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "protocol/http1/client.h"

namespace baton::app {

// One exchange with a server on this machine or network, for commands: one connection, blocking.
struct HttpCall {
  std::string host;  // numeric
  uint16_t port = 0;
  std::string_view method = "GET";
  std::string target;
  std::vector<protocol::http1::Header> headers{};
  std::optional<std::string_view> body{};
  Duration timeout = Duration::s(10);  // of each wait for the server
};
// The answer, of whatever status. Error: a sentence.
[[nodiscard]] Result<protocol::http1::ClientResponse, std::string> http_call(const HttpCall& call);

// The body of a GET that is answered by 200; without a key when that is empty. Error: a sentence.
[[nodiscard]] Result<std::string, std::string> http_get(const std::string& host, uint16_t port,
                                                        const std::string& target, Duration timeout,
                                                        const std::string& api_key = "");

}  // namespace baton::app
