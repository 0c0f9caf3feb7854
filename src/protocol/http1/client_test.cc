#include "protocol/http1/client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace baton::protocol::http1 {
namespace {

using Event = ResponseParser::Event;

// Feeds `bytes` in pieces; the first event that is not kNeedMore, or kNeedMore.
Event feed(ResponseParser& parser, std::string_view& bytes, size_t piece = 1 << 20) {
  while (true) {
    const Event event = parser.next();
    if (event != Event::kNeedMore || bytes.empty()) return event;
    const std::span<char> room = parser.prepare();
    const size_t count = std::min({piece, bytes.size(), room.size()});
    std::memcpy(room.data(), bytes.data(), count);
    parser.commit(count);
    bytes.remove_prefix(count);
  }
}

TEST(Client, WritesARequestHead) {
  std::string out;
  const std::array headers = {Header{"X-A", "b"}};
  append_request_head(
      out,
      {.method = "POST", .target = "/x", .host = "h:1", .headers = headers, .content_length = 3});
  EXPECT_EQ(out, "POST /x HTTP/1.1\r\nHost: h:1\r\nX-A: b\r\nContent-Length: 3\r\n\r\n");
}

TEST(Client, ReadsResponsesOfAllFramings) {
  const std::string bytes =
      "HTTP/1.1 100 Continue\r\n\r\n"
      "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n"
      "HTTP/1.1 200 OK\r\nX-Id: 7\r\nContent-Length: 5\r\n\r\nhello"
      "HTTP/1.1 204 No Content\r\n\r\n"
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
      "HTTP/1.1 404\r\n\r\nuntil the end";
  for (size_t piece = 1; piece < bytes.size(); ++piece) {
    ResponseParser parser;
    std::string_view left = bytes;
    ASSERT_EQ(feed(parser, left, piece), Event::kContinue);
    ASSERT_EQ(feed(parser, left, piece), Event::kComplete);
    ClientResponse response = parser.take();
    EXPECT_EQ(response.header("x-id"), "7");
    EXPECT_EQ(response.body, "hello");
    ASSERT_EQ(feed(parser, left, piece), Event::kComplete);
    EXPECT_EQ(parser.take().status, 204);
    ASSERT_EQ(feed(parser, left, piece), Event::kComplete);
    EXPECT_EQ(parser.take().body, "abc");
    ASSERT_EQ(feed(parser, left, piece), Event::kNeedMore);
    ASSERT_EQ(parser.end(), Event::kComplete);
    response = parser.take();
    EXPECT_EQ(response.status, 404);
    EXPECT_EQ(response.body, "until the end");
    EXPECT_FALSE(response.keep_alive);
  }
}

TEST(Client, ReadsNoBodyInAnswerToHead) {
  ResponseParser parser;
  std::string_view bytes = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n";
  parser.expect(true);
  ASSERT_EQ(feed(parser, bytes), Event::kComplete);
  const ClientResponse response = parser.take();
  EXPECT_TRUE(response.body.empty());
  EXPECT_FALSE(response.keep_alive);
  EXPECT_TRUE(parser.idle());
}

TEST(Client, RefusesBrokenResponses) {
  for (std::string_view bytes :
       {"HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000\r\n\r\n",
        "200 OK\r\n\r\n", "HTTP/1.1 200 OK\n\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
    ResponseParser parser;
    std::string_view left = bytes;
    EXPECT_EQ(feed(parser, left), Event::kRefused) << bytes;
    EXPECT_FALSE(parser.error().empty());
  }
  ResponseParser parser;
  std::string_view cut = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel";
  EXPECT_EQ(feed(parser, cut), Event::kNeedMore);
  EXPECT_EQ(parser.end(), Event::kRefused);
}

}  // namespace
}  // namespace baton::protocol::http1
