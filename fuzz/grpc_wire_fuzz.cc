// gRPC over HTTP/2: every call that is told ends with one kClosed, events come in order, what is
// held stays bounded, and all of it is so however the bytes are cut. Calls are answered, finished
// at once, or left alone, as their number says.
//
// Input: one byte that seeds the cuts and the answers, then the bytes of a connection after its
// preface.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "protocol/grpc_wire/server_session.h"

namespace {

using namespace baton::protocol::grpc_wire;
using Kind = SessionEvent::Kind;

constexpr size_t kMostMessage = 5000;
constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct Call {
  bool half_closed = false;
  bool faulted = false;
  bool encoded = false;
};

class Server {
 public:
  Server() : session_(options()) {}

  bool feed(std::string_view bytes) {
    const bool serving = session_.receive(bytes);
    take_events();
    OutputQueue out;
    session_.fill(out, 100'000);
    take_events();
    BATON_CHECK(session_.partial_bytes() <= calls_.size() * (kMostMessage + 5));
    return serving && !session_.over();
  }
  void finish_all() {
    for (const auto& [id, call] : calls_) session_.finish(id, {});
    OutputQueue out;
    session_.fill(out, 100'000);
    take_events();
  }

 private:
  static SessionOptions options() {
    SessionOptions options;
    options.streams_max = 20;
    options.metadata_bytes_max = 1000;
    options.encodings = {"gzip"};
    options.message_limit = [](std::string_view) { return kMostMessage; };
    return options;
  }

  void take_events() {
    while (auto event = session_.next_event()) take(*event);
  }

  void take(const SessionEvent& event) {
    if (event.kind == Kind::kRefused) return;
    if (event.kind == Kind::kCall) {
      BATON_CHECK(event.head != nullptr && calls_.emplace(event.stream, Call{}).second);
      BATON_CHECK(calls_.size() <= 20);
      if (event.head->metadata.find("grpc-encoding") == "gzip") {
        session_.set_answer_encoding(event.stream, "gzip");
        calls_[event.stream].encoded = true;
      }
      if (event.stream % 8 == 1) session_.finish(event.stream, {StatusCode::kInternal, "no\n"});
      return;
    }
    const auto found = calls_.find(event.stream);
    BATON_CHECK(found != calls_.end());
    Call& call = found->second;
    switch (event.kind) {
      case Kind::kMessage:
        BATON_CHECK(!call.half_closed && !call.faulted && event.message.size() <= kMostMessage);
        BATON_CHECK(call.encoded || !event.compressed);
        answer(event);
        break;
      case Kind::kHalfClose:
        BATON_CHECK(!std::exchange(call.half_closed, true) && !call.faulted);
        break;
      case Kind::kFault:
        BATON_CHECK(!std::exchange(call.faulted, true) && !event.refusal.message.empty());
        session_.finish(event.stream, {StatusCode::kInvalidArgument, event.refusal.message});
        break;
      case Kind::kClosed:
        calls_.erase(found);
        break;
      case Kind::kCall:
      case Kind::kRefused:
      case Kind::kSent:
        break;
    }
  }

  void answer(const SessionEvent& event) {
    if (event.stream % 8 == 3) return;  // never
    const auto kept = std::make_shared<const std::string>(event.message);
    std::vector<MessagePart> parts(1);
    parts.front() = {.text = "head", .view = *kept, .keep = kept};
    session_.send(event.stream, std::move(parts), event.compressed);
    if (event.stream % 8 == 5) session_.finish(event.stream, {});
  }

  ServerSession session_;
  std::map<StreamId, Call> calls_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  baton::Random cuts(data[0]);
  const std::string input =
      std::string(kPreface) + std::string(reinterpret_cast<const char*>(data) + 1, size - 1);
  Server server;
  for (std::string_view rest = input; !rest.empty();) {
    const size_t count = 1 + cuts.below(std::min<size_t>(rest.size(), 1ULL << cuts.below(14)));
    if (!server.feed(rest.substr(0, count))) break;
    rest.remove_prefix(count);
  }
  server.finish_all();
  return 0;
}
