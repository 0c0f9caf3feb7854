#pragma once
// A client on one blocking connection, one exchange after the other.

#include <cstdint>
#include <string>

#include "protocol/http1/client.h"

namespace bench {

class HttpExchange {
 public:
  explicit HttpExchange(uint16_t port);
  ~HttpExchange();
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;
  baton::protocol::http1::ClientResponse ask(const std::string& message);

 private:
  int socket_ = -1;
  baton::protocol::http1::ResponseParser parser_;
};

// A whole POST with a body, as `baton bench` sends it.
[[nodiscard]] std::string post(const std::string& target, const std::string& body,
                               size_t header_length);

}  // namespace bench
