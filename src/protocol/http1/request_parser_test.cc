#include "protocol/http1/request_parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace baton::protocol::http1 {
namespace {

using Event = RequestParser::Event;

struct Parsed {
  std::vector<HttpRequest> requests;
  std::vector<RequestFraming> framings;
  CodecError error{.status = 0, .message = {}};
  [[nodiscard]] int status() const { return error.status; }
};

// Feeds `bytes` in pieces of at most `piece` bytes.
Parsed parse(std::string_view bytes, size_t piece = 1 << 20, const RequestLimits& limits = {}) {
  RequestParser parser(limits);
  Parsed parsed;
  while (true) {
    const Event event = parser.next();
    if (event == Event::kRefused) {
      parsed.error = parser.error();
      return parsed;
    }
    if (event == Event::kHead) parsed.framings.push_back(parser.framing());
    if (event == Event::kComplete) parsed.requests.push_back(parser.take());
    if (event != Event::kNeedMore) continue;
    if (bytes.empty()) return parsed;
    const std::span<char> room = parser.prepare();
    EXPECT_FALSE(room.empty());
    const size_t count = std::min({piece, bytes.size(), room.size()});
    std::memcpy(room.data(), bytes.data(), count);
    parser.commit(count);
    bytes.remove_prefix(count);
  }
}

int status_of(std::string_view bytes) {
  const int whole = parse(bytes).status();
  EXPECT_EQ(parse(bytes, 1).status(), whole) << bytes;
  return whole;
}

std::string get(std::string_view headers) {
  return "GET / HTTP/1.1\r\nHost: a\r\n" + std::string(headers) + "\r\n";
}

std::string post(std::string_view headers, std::string_view body = {}) {
  return "POST /x HTTP/1.1\r\nHost: a\r\n" + std::string(headers) + "\r\n" + std::string(body);
}

TEST(RequestParser, ReadsARequestHoweverItIsCut) {
  const std::string bytes =
      "POST /v2/models/m/infer?x=1 HTTP/1.1\r\nHost: localhost:8000\r\nContent-Type:  text/plain "
      "\r\nX-Empty:\r\nContent-Length: 5\r\n\r\nhello";
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    const Parsed parsed = parse(bytes, piece);
    ASSERT_EQ(parsed.requests.size(), 1U) << parsed.error.message;
    const HttpRequest& request = parsed.requests[0];
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.target, "/v2/models/m/infer?x=1");
    EXPECT_EQ(request.header("content-type"), "text/plain");
    EXPECT_EQ(request.header("x-empty"), "");
    EXPECT_EQ(request.header("absent"), std::nullopt);
    EXPECT_EQ(request.body, "hello");
    EXPECT_EQ(std::count(request.body.end(), request.body.end() + kBodyPadding, '\0'),
              static_cast<ptrdiff_t>(kBodyPadding));
    EXPECT_TRUE(parsed.framings[0].keep_alive);
  }
}

TEST(RequestParser, ReadsPipelinedRequestsInOrder) {
  std::string bytes;
  for (int i = 0; i < 20; ++i) bytes += post("Content-Length: 1\r\n", std::to_string(i % 10));
  for (size_t piece : {size_t{1}, size_t{7}, bytes.size()}) {
    const Parsed parsed = parse(bytes, piece);
    ASSERT_EQ(parsed.requests.size(), 20U);
    for (size_t i = 0; i < 20; ++i) EXPECT_EQ(parsed.requests[i].body, std::to_string(i % 10));
  }
}

// U048: chunks, extensions and trailers give what Content-Length gives.
TEST(RequestParser, ReadsAChunkedBodyLikeAPlainOne) {
  const std::string bytes =
      post("Transfer-Encoding: chunked\r\n",
           "5;name=value;q=\"a b\"\r\nhello\r\n00A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n") +
      get("");
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    const Parsed parsed = parse(bytes, piece);
    ASSERT_EQ(parsed.requests.size(), 2U) << parsed.error.message;
    EXPECT_EQ(parsed.requests[0].body, "hello0123456789");
    EXPECT_EQ(parsed.requests[0].header("trailer"), std::nullopt);
    EXPECT_TRUE(parsed.requests[1].body.empty());
    EXPECT_NE(parsed.requests[1].body.data(), nullptr);  // its padding may be read
  }
}

TEST(RequestParser, ReadsLargeBodiesAcrossTheDirectPath) {
  std::string body(3'000'000, 'a');
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>('a' + i % 23);
  const std::string plain = post("Content-Length: 3000000\r\n", body) + get("");
  std::string chunked = post("Transfer-Encoding: chunked\r\n");
  for (size_t at = 0; at < body.size(); at += 100'000)
    chunked += "186a0\r\n" + body.substr(at, 100'000) + "\r\n";
  chunked += "0\r\n\r\n" + get("");
  for (const std::string& bytes : {plain, chunked}) {
    for (size_t piece : {size_t{1000}, size_t{65'536}, size_t{10'000'000}}) {
      const Parsed parsed = parse(bytes, piece);
      ASSERT_EQ(parsed.requests.size(), 2U) << parsed.error.message;
      EXPECT_TRUE(parsed.requests[0].body == body);
    }
  }
}

// U050: a body belongs to its message whatever the method.
TEST(RequestParser, FramesBodiesOfEveryMethod) {
  const Parsed parsed = parse(
      "DELETE /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
      "OPTIONS * HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nde" +
      get(""));
  ASSERT_EQ(parsed.requests.size(), 3U) << parsed.error.message;
  EXPECT_EQ(parsed.requests[0].body, "abc");
  EXPECT_EQ(parsed.requests[1].target, "*");
  EXPECT_EQ(parsed.requests[1].body, "de");
}

TEST(RequestParser, RefusesWhatTwoParsersCouldFrameDifferently) {
  EXPECT_EQ(status_of(post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n")), 400);
  EXPECT_EQ(status_of(post("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n")), 400);
  EXPECT_EQ(status_of(post("Content-Length: 3\r\nContent-Length: 4\r\n")), 400);
  EXPECT_EQ(status_of(post("Content-Length: 3\r\nContent-Length: 3\r\n")), 400);
  EXPECT_EQ(status_of(post("Content-Length: 3, 3\r\n")), 400);
  EXPECT_EQ(status_of(post("Content-Length: +3\r\n")), 400);
  EXPECT_EQ(status_of(post("Content-Length: -3\r\n")), 400);
  EXPECT_EQ(status_of(post("Content-Length: 0x3\r\n")), 400);
  EXPECT_EQ(status_of(post("Content-Length: 3 4\r\n")), 400);
  EXPECT_EQ(status_of(post("Content-Length:\r\n")), 400);
  EXPECT_EQ(status_of(post("Content-Length: 18446744073709551616\r\n")), 400);
  EXPECT_EQ(status_of(post("Content-Length: 18446744073709551615\r\n")), 413);
  EXPECT_EQ(status_of(post("Transfer-Encoding: gzip, chunked\r\n")), 501);
  EXPECT_EQ(status_of(post("Transfer-Encoding: xchunked\r\n")), 400);
  EXPECT_EQ(status_of(post("Transfer-Encoding: chunked, gzip\r\n")), 400);
  EXPECT_EQ(status_of(post("Transfer-Encoding: chunked, chunked\r\n")), 400);
  EXPECT_EQ(status_of(post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")), 400);
  EXPECT_EQ(status_of(post("Transfer-Encoding: identity\r\n")), 400);
  EXPECT_EQ(status_of(post("Transfer-Encoding: \"chunked\"\r\n")), 400);
  EXPECT_EQ(status_of(post("Transfer-Encoding:\r\n")), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
}

TEST(RequestParser, RefusesMalformedHeaders) {
  EXPECT_EQ(status_of(get("A: b\r\n c\r\n")), 400);  // obs-fold
  EXPECT_EQ(status_of(get("A: b\r\n\tc\r\n")), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\nHost: a\n\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\nB: c\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\n\n"), 400);
  EXPECT_EQ(status_of(get("A : b\r\n")), 400);
  EXPECT_EQ(status_of(get(": b\r\n")), 400);
  EXPECT_EQ(status_of(get("A b\r\n")), 400);
  EXPECT_EQ(status_of(get("A(: b\r\n")), 400);
  EXPECT_EQ(status_of(get(std::string_view("A: b\0c\r\n", 8))), 400);
  EXPECT_EQ(status_of(get("A: b\x01"
                          "c\r\n")),
            400);
  EXPECT_EQ(status_of(get("A: b\x7f\r\n")), 400);
  EXPECT_EQ(status_of(get("A: b\rc\r\n")), 400);
  EXPECT_EQ(status_of(get("A: b\xc3\xa4\r\n")), 0);  // opaque bytes are allowed
}

TEST(RequestParser, RefusesMalformedRequestLines) {
  EXPECT_EQ(status_of("GET /\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1 \r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /a\tb HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /#f HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET a HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET * HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("G(T / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of(std::string(33, 'G') + " / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"), 501);
  EXPECT_EQ(status_of("GET / http/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.2\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(status_of("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET / HTTP/01.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("\x16\x03\x01"), 400);
  EXPECT_NE(parse("\x16\x03\x01").error.message.find("TLS"), std::string::npos);
  EXPECT_EQ(status_of("\r\n\r\n" + get("")), 0);
  EXPECT_EQ(status_of("\r\n\r\n\r\n\r\n\r\n" + get("")), 400);
  EXPECT_EQ(status_of("\n" + get("")), 400);
}

TEST(RequestParser, WantsOneHost) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\n\r\n"), 0);
  EXPECT_EQ(status_of(get("Host: a\r\n")), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: u@b\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost:\r\n\r\n"), 0);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: [::1]:8000\r\n\r\n"), 0);
}

TEST(RequestParser, CutsAnAbsoluteTargetDownToItsPath) {
  const auto target = [](std::string_view text) {
    Parsed parsed = parse("GET " + std::string(text) + " HTTP/1.1\r\nHost: a\r\n\r\n");
    if (parsed.requests.empty()) return std::to_string(parsed.status());
    return std::string(parsed.requests[0].target);
  };
  EXPECT_EQ(target("http://h:80/v2?x"), "/v2?x");
  EXPECT_EQ(target("HTTP://h"), "/");
  EXPECT_EQ(target("http://"), "400");
  EXPECT_EQ(target("http:///x"), "400");
  EXPECT_EQ(target("http://h?x"), "400");
  EXPECT_EQ(target("ftp://h/x"), "400");
}

TEST(RequestParser, KnowsWhenTheConnectionPersists) {
  const auto keeps = [](std::string_view bytes) { return parse(bytes).framings.at(0).keep_alive; };
  EXPECT_TRUE(keeps(get("")));
  EXPECT_FALSE(keeps(get("Connection: close\r\n")));
  EXPECT_FALSE(keeps(get("Connection: foo , Close\r\n")));
  EXPECT_FALSE(keeps(get("Connection: keep-alive\r\nConnection: close\r\n")));
  EXPECT_FALSE(keeps("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keeps("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
}

TEST(RequestParser, ReadsExpectations) {
  EXPECT_TRUE(
      parse(post("Content-Length: 1\r\nExpect: 100-Continue\r\n")).framings.at(0).expects_continue);
  EXPECT_FALSE(parse("POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n")
                   .framings.at(0)
                   .expects_continue);
  EXPECT_EQ(status_of(post("Expect: 200-ok\r\n")), 417);
}

TEST(RequestParser, KeepsTheLimitsOfTheHead) {
  EXPECT_EQ(status_of("GET /" + std::string(9'000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
  EXPECT_EQ(status_of("GET /" + std::string(20'000, 'a')), 414);
  EXPECT_EQ(status_of(get("A: " + std::string(20'000, 'a') + "\r\n")), 431);
  std::string many;
  for (int i = 0; i < 100; ++i) many += "A: b\r\n";
  EXPECT_EQ(status_of(get(many)), 431);  // Host is one more
  EXPECT_EQ(status_of(get(many.substr(6))), 0);
  // A head of exactly the limit passes, one byte more does not.
  RequestLimits limits;
  limits.head_bytes = 1024;
  const std::string exact = get("A: " + std::string(1024 - get("A: \r\n").size(), 'a') + "\r\n");
  ASSERT_EQ(exact.size(), 1024U);
  EXPECT_EQ(parse(exact, 1 << 20, limits).requests.size(), 1U);
  std::string over = exact;
  over.insert(over.size() - 4, "a");
  EXPECT_EQ(parse(over, 1 << 20, limits).status(), 431);
}

TEST(RequestParser, KeepsTheLimitsOfTheBody) {
  RequestLimits limits;
  limits.body_bytes = 10;
  limits.chunks = 4;
  const auto status = [&](const std::string& bytes) {
    EXPECT_EQ(parse(bytes, 1, limits).status(), parse(bytes, 1 << 20, limits).status());
    return parse(bytes, 1 << 20, limits).status();
  };
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  EXPECT_EQ(status(post("Content-Length: 10\r\n", "0123456789")), 0);
  EXPECT_EQ(status(post("Content-Length: 11\r\n")), 413);
  EXPECT_EQ(status(post(chunked, "a\r\n0123456789\r\n0\r\n\r\n")), 0);
  EXPECT_EQ(status(post(chunked, "b\r\n")), 413);
  EXPECT_EQ(status(post(chunked, "9\r\n012345678\r\n2\r\n")), 413);
  EXPECT_EQ(status(post(chunked, "fffffffffffffff\r\n")), 413);
  EXPECT_EQ(status(post(chunked, "1\r\na\r\n1\r\na\r\n1\r\na\r\n1\r\na\r\n1\r\na\r\n")), 413);
}

TEST(RequestParser, RefusesMalformedChunks) {
  const auto status = [](const std::string& body) {
    return status_of(post("Transfer-Encoding: chunked\r\n", body));
  };
  EXPECT_EQ(status("\r\n"), 400);
  EXPECT_EQ(status("g\r\n"), 400);
  EXPECT_EQ(status("-1\r\n"), 400);
  EXPECT_EQ(status("0x1\r\na\r\n"), 400);
  EXPECT_EQ(status("1 \r\na\r\n"), 400);
  EXPECT_EQ(status("1\na\r\n"), 400);
  EXPECT_EQ(status("1\r\nab\r\n"), 400);
  EXPECT_EQ(status("1\r\na\n"), 400);
  EXPECT_EQ(status("1\r\na\r1\r\n"), 400);
  EXPECT_EQ(status("1;\x01\r\n"), 400);
  EXPECT_EQ(status("1;a\rb\r\n"), 400);
  EXPECT_EQ(status("1;a=\"b\r\n"), 400);
  EXPECT_EQ(status("1;a=\"\\\r\n"), 400);
  EXPECT_EQ(status("1;a=\r\n"), 400);
  EXPECT_EQ(status("1;\r\n"), 400);
  EXPECT_EQ(status("1; a = \"\\\"\" ; b\r\na\r\n0\r\n\r\n"), 0);
  EXPECT_EQ(status("10000000000000000\r\n"), 400);
  EXPECT_EQ(status("1;" + std::string(2'000, 'a')), 400);
  EXPECT_EQ(status("0\r\nA b\r\n\r\n"), 400);
  EXPECT_EQ(status("0\r\nA: b\n\r\n"), 400);
  EXPECT_EQ(status("0\r\nA: " + std::string(9'000, 'a')), 431);
  EXPECT_EQ(status("0\r\nContent-Length: 5\r\n\r\n"), 400);
  EXPECT_EQ(status("0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
}

TEST(RequestParser, StopsReadingAheadAtTheHeadLimit) {
  RequestParser parser({});
  const std::string first = get("");
  std::memcpy(parser.prepare().data(), first.data(), first.size());
  parser.commit(first.size());
  ASSERT_EQ(parser.next(), Event::kHead);
  ASSERT_EQ(parser.next(), Event::kComplete);
  const HttpRequest request = parser.take();
  size_t ahead = 0;
  for (auto room = parser.prepare(); !room.empty(); room = parser.prepare()) {
    std::fill(room.begin(), room.end(), 'G');
    parser.commit(room.size());
    ahead += room.size();
  }
  EXPECT_EQ(ahead, RequestLimits().head_bytes);
  EXPECT_FALSE(parser.has_room());
  EXPECT_EQ(request.target, "/");
}

}  // namespace
}  // namespace baton::protocol::http1
