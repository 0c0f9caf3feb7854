#include "adapters/http/http_server.h"

#include <gtest/gtest.h>

#include "adapters/http/steady_clock.h"
#include "adapters/http/test_support.h"

namespace baton::adapters::http {
namespace {

using protocol::http1::HttpResponse;

TEST(HttpServer, AnswersAndKeepsTheConnection) {
  TestServer server;
  TestClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    const TestResponse response = client.receive();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "hello");
  }
  EXPECT_EQ(server.server().counters().accepted, 1U);
}

}  // namespace
}  // namespace baton::adapters::http
