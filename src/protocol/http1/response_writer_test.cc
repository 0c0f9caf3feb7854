#include "protocol/http1/response_writer.h"

#include <gtest/gtest.h>

namespace baton::protocol::http1 {
namespace {

std::string head(const HttpResponse& response, const ResponseFraming& framing = {}) {
  std::string out;
  append_response_head(out, response, framing);
  return out;
}

TEST(ResponseWriter, CountsBodyAndParts) {
  HttpResponse response;
  response.content_type = "text/plain";
  response.body = "abc";
  const std::string part = "defg";
  response.parts = {std::as_bytes(std::span(part))};
  response.headers = {{"X-A", "b"}};
  EXPECT_EQ(head(response),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-A: b\r\nContent-Length: 7\r\n\r\n");
}

TEST(ResponseWriter, SaysWhetherTheConnectionPersists) {
  HttpResponse response;
  EXPECT_EQ(head(response, {.keep_alive = false}),
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(head(response, {.http_1_0 = true}),
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n");
}

TEST(ResponseWriter, SendsNoBodyWhereThereIsNone) {
  HttpResponse response;
  response.status = 204;
  EXPECT_EQ(head(response), "HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_FALSE(sends_body(204, false));
  EXPECT_FALSE(sends_body(304, false));
  EXPECT_FALSE(sends_body(200, true));
  response.status = 200;
  response.body = "abc";
  EXPECT_EQ(head(response, {.head_request = true}), "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
}

TEST(ResponseWriter, LetsNoValueEndTheHead) {
  HttpResponse response;
  response.headers = {{"X-Id", "a\r\nSet-Cookie: b"},
                      {"Bad Name", "x"},
                      {"content-length", "9"},
                      {"Transfer-Encoding", "chunked"}};
  EXPECT_EQ(head(response),
            "HTTP/1.1 200 OK\r\nX-Id: a  Set-Cookie: b\r\nContent-Length: 0\r\n\r\n");
}

}  // namespace
}  // namespace baton::protocol::http1
