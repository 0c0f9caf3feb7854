// The HTTP/1.1 codec: what comes out does not depend on how the bytes are cut, and a second parser
// (Boost.Beast) reads every accepted request as the same message with the same end, so that nothing
// can be smuggled between two readers.
//
// Input: one byte that seeds the cuts, one of mode, then the bytes of a connection.

#include <algorithm>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/random.h"
#include "protocol/http1/client.h"
#include "protocol/http1/fields.h"
#include "protocol/http1/request_parser.h"

namespace {

using namespace baton::protocol::http1;
namespace beast_http = boost::beast::http;

constexpr RequestLimits kLimits = {.head_bytes = 4096,
                                   .headers = 20,
                                   .target_bytes = 512,
                                   .body_bytes = 20'000,
                                   .chunks = 64,
                                   .chunk_line_bytes = 64,
                                   .trailer_bytes = 256};

// Moves the next piece of `bytes` into `parser`, of a length that `cuts` chooses; null: as much as
// fits.
template <class Parser>
void feed(Parser& parser, std::string_view& bytes, baton::Random* cuts) {
  const std::span<char> room = parser.prepare();
  BATON_CHECK(!room.empty());
  size_t count = std::min(room.size(), bytes.size());
  if (cuts != nullptr) count = 1 + cuts->below(std::min<size_t>(count, 1ULL << cuts->below(12)));
  std::memcpy(room.data(), bytes.data(), count);
  parser.commit(count);
  bytes.remove_prefix(count);
}

void add(std::string& trace, std::string_view text) {
  trace.append(std::to_string(text.size())).append(":").append(text).append(" ");
}

void add_request(std::string& trace, const HttpRequest& request) {
  add(trace, request.method);
  add(trace, request.target);
  for (const HeaderView& header : request.headers) {
    add(trace, header.name);
    add(trace, header.value);
  }
  add(trace, request.body);
  for (size_t i = 0; i < kBodyPadding; ++i)
    BATON_CHECK(request.body.data()[request.body.size() + i] == 0);
}

std::string trace_requests(std::string_view bytes, baton::Random* cuts) {
  RequestParser parser(kLimits);
  std::string trace;
  while (true) {
    switch (parser.next()) {
      case RequestParser::Event::kNeedMore:
        if (bytes.empty()) return trace;
        feed(parser, bytes, cuts);
        break;
      case RequestParser::Event::kHead:
        trace += parser.framing().keep_alive ? "keep " : "close ";
        trace += parser.framing().expects_continue ? "expects " : "";
        break;
      case RequestParser::Event::kContinue:
        BATON_CHECK(false);  // of responses alone
        break;
      case RequestParser::Event::kComplete:
        add_request(trace, parser.take());
        break;
      case RequestParser::Event::kRefused:
        add(trace, parser.error().message);
        return trace + std::to_string(parser.error().status);
    }
  }
}

std::string trace_responses(std::string_view bytes, baton::Random* cuts) {
  ResponseParser parser({.head_bytes = 4096, .headers = 20, .body_bytes = 20'000});
  std::string trace;
  bool ended = false;
  while (true) {
    ResponseParser::Event event = parser.next();
    if (event == ResponseParser::Event::kNeedMore && !bytes.empty()) {
      feed(parser, bytes, cuts);
      continue;
    }
    if (event == ResponseParser::Event::kNeedMore) {
      if (std::exchange(ended, true)) return trace;
      event = parser.end();
    }
    if (event == ResponseParser::Event::kContinue) trace += "continue ";
    if (event == ResponseParser::Event::kRefused) return trace + parser.error();
    if (event != ResponseParser::Event::kComplete) continue;
    const ClientResponse response = parser.take();
    trace += std::to_string(response.status) + " ";
    add(trace, response.body);
  }
}

// Beast reads one message off `bytes`. False where it is stricter than we are in what carries no
// meaning.
bool read_by_beast(std::string_view& bytes, beast_http::request<beast_http::string_body>& message) {
  beast_http::request_parser<beast_http::string_body> parser;
  parser.eager(true);
  parser.header_limit(1 << 16);
  parser.body_limit(1 << 20);
  while (!parser.is_done()) {
    boost::system::error_code error;
    const size_t used = parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
    bytes.remove_prefix(used);
    // Beast parses what we only check for control characters: extensions, and the lists in
    // Connection and Upgrade.
    if (error == beast_http::error::bad_chunk_extension || error == beast_http::error::bad_value) {
      return false;
    }
    BATON_CHECK(!error);
  }
  message = parser.release();
  return true;
}

void compare_with_beast(std::string_view bytes) {
  RequestParser parser(kLimits);
  std::string_view unread = bytes;
  std::string_view beast_unread = bytes;
  while (true) {
    const RequestParser::Event event = parser.next();
    if (event == RequestParser::Event::kRefused) return;
    if (event == RequestParser::Event::kNeedMore) {
      if (unread.empty()) return;
      feed(parser, unread, nullptr);
    }
    if (event != RequestParser::Event::kComplete) continue;
    const HttpRequest request = parser.take();
    while (beast_unread.starts_with("\r\n")) beast_unread.remove_prefix(2);
    beast_http::request<beast_http::string_body> message;
    if (!read_by_beast(beast_unread, message)) return;
    BATON_CHECK(std::string_view(message.method_string()) == request.method);
    BATON_CHECK(std::string_view(message.target()).ends_with(request.target) ||
                request.target == "/");
    BATON_CHECK(message.body() == request.body);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  baton::Random cuts(data[0]);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  if ((data[1] & 1) != 0) {
    BATON_CHECK(trace_responses(bytes, nullptr) == trace_responses(bytes, &cuts));
    return 0;
  }
  BATON_CHECK(trace_requests(bytes, nullptr) == trace_requests(bytes, &cuts));
  compare_with_beast(bytes);
  return 0;
}
