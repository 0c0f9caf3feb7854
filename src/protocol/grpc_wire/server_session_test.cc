#include "protocol/grpc_wire/server_session.h"

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <map>

#include "base/bytes.h"
#include "protocol/grpc_wire/message_reader.h"

namespace baton::protocol::grpc_wire {
namespace {

using Kind = SessionEvent::Kind;

std::string framed(const std::string& message) {
  const auto prefix = message_prefix(static_cast<uint32_t>(message.size()));
  return std::string(prefix.data(), prefix.size()) + message;
}

// The library's client side, in memory.
class Client {
 public:
  Client() {
    nghttp2_session_callbacks* calls = nullptr;
    nghttp2_session_callbacks_new(&calls);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
    nghttp2_session_client_new(&session_, calls, this);
    nghttp2_session_callbacks_del(calls);
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, nullptr, 0);
  }
  ~Client() { nghttp2_session_del(session_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  struct Answer {
    std::map<std::string, std::string> headers;  // and trailers
    std::string data;
    bool closed = false;
    uint32_t error = 0;
  };

  StreamId call(const std::string& path, const std::string& body, bool end = true,
                std::vector<std::pair<std::string, std::string>> more = {}) {
    std::vector<std::pair<std::string, std::string>> all = {{":method", "POST"},
                                                            {":scheme", "http"},
                                                            {":path", path},
                                                            {":authority", "a"},
                                                            {"content-type", content_type}};
    all.insert(all.end(), more.begin(), more.end());
    std::vector<nghttp2_nv> fields;
    for (auto& [name, value] : all) {
      fields.push_back({reinterpret_cast<uint8_t*>(name.data()),
                        reinterpret_cast<uint8_t*>(value.data()), name.size(), value.size(),
                        NGHTTP2_NV_FLAG_NONE});
    }
    bodies_.push_back(std::make_unique<Body>(body, end));
    nghttp2_data_provider provider{};
    provider.source.ptr = bodies_.back().get();
    provider.read_callback = read;
    const StreamId id =
        nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(), &provider, nullptr);
    body_of_[id] = bodies_.back().get();
    return id;
  }
  // The rest of a call that was not ended.
  void more(StreamId stream, const std::string& bytes) {
    body_of_[stream]->bytes += bytes;
    body_of_[stream]->end = true;
    nghttp2_session_resume_data(session_, stream);
  }
  void reset(StreamId stream) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
  }

  // Moves bytes both ways until nobody has any. False: the server wants to close.
  bool exchange(ServerSession& server) {
    for (bool moved = true; moved;) {
      moved = false;
      const uint8_t* data = nullptr;
      for (ssize_t size; (size = nghttp2_session_mem_send(session_, &data)) > 0;) {
        moved = true;
        const auto bytes = as_chars(std::as_bytes(std::span(data, static_cast<size_t>(size))));
        if (!server.receive(bytes)) return false;
      }
      OutputQueue out;
      server.fill(out, 64 << 10);
      std::vector<std::span<const char>> pieces;
      out.front(100, pieces);
      for (const auto& piece : pieces) {
        moved = true;
        nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(piece.data()),
                                 piece.size());
      }
    }
    return true;
  }

  std::string content_type = "application/grpc";

  Answer& answer(StreamId stream) { return answers_[stream]; }
  [[nodiscard]] int goaways() const { return goaways_; }

 private:
  struct Body {
    Body(std::string given, bool last) : bytes(std::move(given)), end(last) {}
    std::string bytes;
    bool end;
    size_t used = 0;
  };
  static ssize_t read(nghttp2_session*, int32_t, uint8_t* to, size_t most, uint32_t* flags,
                      nghttp2_data_source* source, void*) {
    auto& body = *static_cast<Body*>(source->ptr);
    const size_t count = std::min(most, body.bytes.size() - body.used);
    std::copy_n(body.bytes.data() + body.used, count, to);
    body.used += count;
    if (body.used < body.bytes.size()) return static_cast<ssize_t>(count);
    if (body.end) *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (count == 0 && !body.end) return NGHTTP2_ERR_DEFERRED;
    return static_cast<ssize_t>(count);
  }
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                       size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                       void* user) {
    self(user).answers_[frame->hd.stream_id].headers[std::string(name, name + name_size)] =
        std::string(value, value + value_size);
    return 0;
  }
  static int on_data(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size,
                     void* user) {
    self(user).answers_[id].data.append(data, data + size);
    return 0;
  }
  static int on_close(nghttp2_session*, int32_t id, uint32_t error, void* user) {
    self(user).answers_[id].closed = true;
    self(user).answers_[id].error = error;
    return 0;
  }
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type == NGHTTP2_GOAWAY) ++self(user).goaways_;
    return 0;
  }
  static Client& self(void* user) { return *static_cast<Client*>(user); }

  nghttp2_session* session_ = nullptr;
  std::vector<std::unique_ptr<Body>> bodies_;
  std::map<StreamId, Body*> body_of_;
  std::map<StreamId, Answer> answers_;
  int goaways_ = 0;
};

class SessionTest : public ::testing::Test {
 protected:
  void start(SessionOptions options = {}) {
    if (!options.message_limit) options.message_limit = [](std::string_view) { return 1 << 20; };
    server_ = std::make_unique<ServerSession>(std::move(options));
  }
  std::vector<SessionEvent> events() {
    std::vector<SessionEvent> all;
    while (auto event = server_->next_event()) all.push_back(*std::move(event));
    return all;
  }
  std::string kinds() {
    std::string text;
    for (const SessionEvent& event : events()) {
      text += "CMHFSXR"[static_cast<int>(event.kind)];
      if (event.kind == Kind::kFault) last_fault_ = event.refusal;
      if (event.kind == Kind::kClosed) complete_ = event.complete;
    }
    return text;
  }
  static std::vector<MessagePart> text(std::string message) {
    std::vector<MessagePart> parts(1);
    parts.front().text = std::move(message);
    return parts;
  }

  std::unique_ptr<ServerSession> server_;
  Client client_;
  Refusal last_fault_;
  bool complete_ = false;
};

TEST_F(SessionTest, CarriesACallAndItsAnswer) {
  start();
  const StreamId id =
      client_.call("/s/m", framed("hello"), true, {{"grpc-timeout", "5S"}, {"x-tenant", "t"}});
  ASSERT_TRUE(client_.exchange(*server_));
  EXPECT_TRUE(server_->established());
  auto all = events();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].kind, Kind::kCall);
  EXPECT_EQ(all[0].head->path, "/s/m");
  EXPECT_EQ(all[0].head->timeout, Duration::s(5));
  EXPECT_EQ(all[0].head->metadata.find("x-tenant"), "t");
  EXPECT_EQ(all[1].message, "hello");
  EXPECT_EQ(all[2].kind, Kind::kHalfClose);
  server_->send(id, text("world"));
  server_->finish(id, {});
  server_->finish(id, {StatusCode::kInternal, "too late"});
  ASSERT_TRUE(client_.exchange(*server_));
  EXPECT_EQ(client_.answer(id).data, framed("world"));
  EXPECT_EQ(client_.answer(id).headers[":status"], "200");
  EXPECT_EQ(client_.answer(id).headers["grpc-status"], "0");
  EXPECT_EQ(client_.answer(id).error, 0U);
  EXPECT_EQ(kinds(), "X");
  EXPECT_TRUE(complete_);
  EXPECT_EQ(server_->open_calls(), 0U);
}

TEST_F(SessionTest, SendsLargeOutputsAsViewsWithinThePeersWindow) {
  start();
  const auto large = std::make_shared<std::string>(300'000, 'x');
  const StreamId id = client_.call("/s/m", framed(""));
  ASSERT_TRUE(client_.exchange(*server_));
  std::vector<MessagePart> parts(2);
  parts[0].text = "head";
  parts[0].view = *large;
  parts[0].keep = large;
  parts[1].text = "tail";
  server_->send(id, std::move(parts));
  server_->finish(id, {StatusCode::kOk, "", {{"x-more", "1"}}});
  EXPECT_EQ(large.use_count(), 2);
  ASSERT_TRUE(client_.exchange(*server_));
  EXPECT_EQ(client_.answer(id).data, framed("head" + *large + "tail"));
  EXPECT_EQ(client_.answer(id).headers["x-more"], "1");
  EXPECT_EQ(large.use_count(), 1);
}

TEST_F(SessionTest, SendsSeveralMessagesOfOneCall) {
  start();
  const StreamId id = client_.call("/s/m", framed(""));
  ASSERT_TRUE(client_.exchange(*server_));
  EXPECT_EQ(kinds(), "CMH");
  for (const char* message : {"one", "two"}) {
    server_->send(id, text(message));
    ASSERT_TRUE(client_.exchange(*server_));
    EXPECT_EQ(kinds(), "S");
  }
  server_->finish(id, {});
  ASSERT_TRUE(client_.exchange(*server_));
  EXPECT_EQ(client_.answer(id).data, framed("one") + framed("two"));
  EXPECT_TRUE(client_.answer(id).closed);
}

TEST_F(SessionTest, EndsACallEarlyAndDropsWhatStillComes) {
  start();
  const StreamId id =
      client_.call("/s/m", framed(std::string(100'000, 'x')).substr(0, 50'000), false);
  ASSERT_TRUE(client_.exchange(*server_));
  EXPECT_EQ(kinds(), "C");
  EXPECT_EQ(server_->partial_bytes(), 50'000U);
  server_->finish(id, {StatusCode::kUnauthenticated, "no key"});
  EXPECT_EQ(server_->partial_bytes(), 0U);
  ASSERT_TRUE(client_.exchange(*server_));
  EXPECT_EQ(client_.answer(id).headers["grpc-status"], "16");
  EXPECT_EQ(client_.answer(id).headers["grpc-message"], "no key");
  EXPECT_TRUE(client_.answer(id).closed);  // the client is told not to send the rest
  EXPECT_EQ(kinds(), "X");
}

TEST_F(SessionTest, TellsThatTheClientHasGivenUp) {
  start();
  const StreamId id = client_.call("/s/m", framed("a"));
  ASSERT_TRUE(client_.exchange(*server_));
  EXPECT_EQ(kinds(), "CMH");
  client_.reset(id);
  ASSERT_TRUE(client_.exchange(*server_));
  EXPECT_EQ(kinds(), "X");
  EXPECT_FALSE(complete_);
  server_->send(id, text("nobody reads this"));
  server_->finish(id, {});
  ASSERT_TRUE(client_.exchange(*server_));
}

TEST_F(SessionTest, FaultsWhatIsNoCall) {
  SessionOptions options;
  options.message_limit = [](std::string_view path) { return path == "/s/small" ? 10 : 1000; };
  start(options);
  const auto fault = [&](const std::string& path, const std::string& body,
                         std::vector<std::pair<std::string, std::string>> more = {}) {
    const StreamId id = client_.call(path, body, true, std::move(more));
    EXPECT_TRUE(client_.exchange(*server_));
    const std::string told = kinds();
    EXPECT_EQ(told.substr(0, 2), "CF") << path;
    server_->finish(id, {StatusCode::kUnknown, ""});
    EXPECT_TRUE(client_.exchange(*server_));
    EXPECT_EQ(kinds(), "X");
    return last_fault_.reason;
  };
  EXPECT_EQ(fault("/s/small", framed("0123456789a")), EndReason::kTooLarge);
  EXPECT_EQ(fault("/s/m", framed("abc").substr(0, 6)), EndReason::kInvalid);
  EXPECT_EQ(fault("/s/m", std::string("\1\0\0\0\1a", 6)), EndReason::kInvalid);
  EXPECT_EQ(fault("/s/m", framed("a"), {{"grpc-timeout", "x"}}), EndReason::kInvalid);
  EXPECT_EQ(fault("/s/m", framed("a"), {{"grpc-encoding", "gzip"}}), EndReason::kUnsupported);
  EXPECT_EQ(fault("/s/m", framed("a"), {{"x-long", std::string(17'000, 'a')}}),
            EndReason::kTooLarge);
}

TEST_F(SessionTest, HandsCompressedMessagesOnWhereTheirEncodingIsOffered) {
  SessionOptions options;
  options.message_limit = [](std::string_view) { return 100; };
  options.encodings = {"gzip", "deflate"};
  ServerSession server(options);
  const std::string body = std::string("\1\0\0\0\1a", 6) + framed("b");
  const StreamId id = client_.call("/s/m", body, true, {{"grpc-encoding", "deflate"}});
  ASSERT_TRUE(client_.exchange(server));
  EXPECT_EQ(server.next_event()->kind, Kind::kCall);
  const auto first = server.next_event();
  const auto second = server.next_event();
  EXPECT_EQ(first->message + second->message, "ab");
  EXPECT_TRUE(first->compressed);
  EXPECT_FALSE(second->compressed);

  server.set_answer_encoding(id, "deflate");
  std::vector<MessagePart> parts(1);
  parts.front().text = "packed";
  server.send(id, parts, true);
  server.send(id, parts, false);
  server.finish(id, {});
  ASSERT_TRUE(client_.exchange(server));
  EXPECT_EQ(client_.answer(id).headers["grpc-encoding"], "deflate");
  EXPECT_EQ(client_.answer(id).data,
            std::string("\1\0\0\0\6packed", 11) + std::string("\0\0\0\0\6packed", 11));
}

TEST_F(SessionTest, NamesTheEncodingsThatAreOffered) {
  SessionOptions options;
  options.message_limit = [](std::string_view) { return 100; };
  options.encodings = {"gzip", "deflate"};
  ServerSession server(options);
  const StreamId id = client_.call("/s/m", framed("a"), true, {{"grpc-encoding", "br"}});
  ASSERT_TRUE(client_.exchange(server));
  EXPECT_EQ(server.next_event()->kind, Kind::kCall);
  EXPECT_EQ(server.next_event()->refusal.reason, EndReason::kUnsupported);
  server.finish(id, {StatusCode::kUnimplemented, "no"});
  ASSERT_TRUE(client_.exchange(server));
  EXPECT_EQ(client_.answer(id).headers["grpc-accept-encoding"], "identity,gzip,deflate");
}

TEST_F(SessionTest, AnswersWhatIsNotGrpcWithAnHttpStatus) {
  start();
  for (const char* type : {"text/plain", "application/grpc-web", "application/grpcx"}) {
    client_.content_type = type;
    const StreamId id = client_.call("/s/m", "a");
    ASSERT_TRUE(client_.exchange(*server_));
    EXPECT_EQ(client_.answer(id).headers[":status"], "415");
    EXPECT_TRUE(client_.answer(id).closed);
    EXPECT_EQ(kinds(), "R");
  }
  client_.content_type = "application/grpc+proto";
  client_.call("/s/m", framed("a"));
  ASSERT_TRUE(client_.exchange(*server_));
  EXPECT_EQ(kinds(), "CMH");
}

TEST_F(SessionTest, FaultsIncompleteMessagesAlone) {
  start();
  client_.call("/s/m", framed("abc").substr(0, 6), false);
  client_.call("/s/m", framed("whole"), false);
  ASSERT_TRUE(client_.exchange(*server_));
  EXPECT_EQ(kinds(), "CCM");
  server_->fault_partial({EndReason::kOverloaded, "", {}});
  EXPECT_EQ(kinds(), "F");
}

TEST_F(SessionTest, APausedCallHoldsItsClientBack) {
  SessionOptions options;
  options.stream_window = 70'000;
  start(options);
  const StreamId id = client_.call("/s/m", framed("first"), false);
  ASSERT_TRUE(client_.exchange(*server_));
  EXPECT_EQ(kinds(), "CM");
  server_->pause(id);
  std::string many;
  for (int i = 0; i < 20; ++i) many += framed(std::string(10'000, 'x'));
  client_.more(id, many);
  const StreamId other = client_.call("/s/m", framed("other"));
  ASSERT_TRUE(client_.exchange(*server_));
  EXPECT_EQ(kinds(), "CMH");  // the other's
  EXPECT_GT(server_->partial_bytes(), 60'000U);
  EXPECT_LE(server_->partial_bytes(), 70'000U);
  std::string told;
  for (int i = 0; i < 20; ++i) {
    server_->resume(id);
    told += kinds();
    if (told.size() < 20) server_->pause(id);
    ASSERT_TRUE(client_.exchange(*server_));
    told += kinds();
  }
  EXPECT_EQ(told, std::string(20, 'M') + "H");
  EXPECT_EQ(server_->partial_bytes(), 0U);
  // One that is paused may go as well.
  const StreamId gone = client_.call("/s/m", framed("a"), false);
  ASSERT_TRUE(client_.exchange(*server_));
  server_->pause(gone);
  client_.more(gone, many);
  ASSERT_TRUE(client_.exchange(*server_));
  client_.reset(gone);
  ASSERT_TRUE(client_.exchange(*server_));
  EXPECT_EQ(server_->partial_bytes(), 0U);
  static_cast<void>(other);
}

TEST_F(SessionTest, SaysHowFarCallsAre) {
  start();
  const StreamId waits = client_.call("/s/m", framed("abc").substr(0, 6), false);
  const StreamId works = client_.call("/s/m", framed("abc"));
  ASSERT_TRUE(client_.exchange(*server_));
  std::vector<ServerSession::Progress> calls;
  server_->progress(calls);
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].stream, waits);
  EXPECT_TRUE(calls[0].receiving);
  EXPECT_EQ(calls[1].stream, works);
  EXPECT_FALSE(calls[1].receiving);
  EXPECT_FALSE(calls[1].sending);
  server_->send(works, text("answer"));
  server_->progress(calls);
  EXPECT_TRUE(calls[1].sending);
}

TEST_F(SessionTest, EndsWhenItsCallsHaveEnded) {
  start();
  const StreamId first = client_.call("/s/m", framed("a"));
  ASSERT_TRUE(client_.exchange(*server_));
  server_->announce_end();
  ASSERT_TRUE(client_.exchange(*server_));
  EXPECT_EQ(client_.goaways(), 1);
  server_->end();
  ASSERT_TRUE(client_.exchange(*server_));
  EXPECT_EQ(client_.goaways(), 2);
  EXPECT_FALSE(server_->over());
  server_->finish(first, {});
  ASSERT_TRUE(client_.exchange(*server_));
  EXPECT_EQ(client_.answer(first).headers["grpc-status"], "0");
  EXPECT_TRUE(server_->over());
}

TEST_F(SessionTest, ClosesTheConnectionOfWhoTakesTooManyCallsBack) {
  SessionOptions options;
  options.resets_burst = 20;
  options.resets_per_second = 1;
  start(options);
  int taken_back = 0;
  while (taken_back < 100 && !server_->over()) {
    const StreamId id = client_.call("/s/m", framed("a"));
    if (!client_.exchange(*server_)) break;
    client_.reset(id);
    ++taken_back;
    if (!client_.exchange(*server_)) break;
    events();
  }
  EXPECT_GE(taken_back, 20);
  EXPECT_LT(taken_back, 30);
}

TEST_F(SessionTest, RefusesWhatIsNotHttp2) {
  start();
  EXPECT_FALSE(server_->receive(std::string_view("GET / HTTP/1.1\r\nHost: a\r\n\r\n")));
}

}  // namespace
}  // namespace baton::protocol::grpc_wire
