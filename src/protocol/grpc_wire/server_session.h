#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "domain/end_reason.h"
#include "domain/tensor.h"
#include "protocol/grpc_wire/metadata.h"
#include "protocol/grpc_wire/output_queue.h"
#include "protocol/grpc_wire/status.h"

namespace baton::protocol::grpc_wire {

using StreamId = int32_t;  // odd; grows with each call of a connection

struct SessionOptions {
  uint32_t streams_max = 1024;            // open calls of one connection; more are refused
  size_t metadata_bytes_max = 16 * 1024;  // of one call: names, values and 32 for each
  uint32_t stream_window = 1 << 20;       // bytes of a call that may be on their way
  uint32_t connection_window = 8U << 20;  // of all calls
  // Calls that the client takes back: so many at once and then so many a second; beyond it the
  // connection is closed. A client whose calls run out of time takes them back.
  uint64_t resets_burst = 10'000;
  uint64_t resets_per_second = 2'000;
  // What its user expands beside identity, as in grpc-encoding and in the order of preference.
  std::vector<std::string> encodings;
  // The most bytes that a message to the method of this path may have, on the wire.
  std::function<size_t(std::string_view path)> message_limit;
};

// A call's head.
struct CallHead {
  std::string path;  // "/package.Service/Method"
  Metadata metadata;
  std::optional<Duration> timeout;  // that the client gives it, from now on
};

struct SessionEvent {
  enum class Kind : uint8_t {
    kCall,       // `head`
    kMessage,    // `message`; when `compressed`, with what the call's grpc-encoding says
    kHalfClose,  // the client sends no more messages
    kFault,    // `refusal`: what the client sends is no call or too much; it is to be finished with
               // that, and no more messages come
    kSent,     // all messages given to send() have gone into the output
    kClosed,   // the call is over; `complete`: its status went out
    kRefused,  // what was no call: answered with an HTTP status; `refusal` for the count
  };
  Kind kind = Kind::kClosed;
  StreamId stream = 0;
  bool complete = false;
  std::unique_ptr<CallHead> head;
  std::string message;
  bool compressed = false;
  Refusal refusal;
};

// A part of a message: `text`, then `view`, which `keep` keeps alive until it has been written.
// With an empty view it is kept until the call is over.
struct MessagePart {
  std::string text;
  std::span<const char> view;
  Storage keep;
};

// The server's side of one connection.
class ServerSession {
 public:
  explicit ServerSession(SessionOptions options);
  ~ServerSession();
  ServerSession(const ServerSession&) = delete;
  ServerSession& operator=(const ServerSession&) = delete;

  // Takes bytes from the peer. False: the connection is broken or the peer went beyond a bound;
  // what is in the output is to be written, then it is closed.
  [[nodiscard]] bool receive(std::span<const char> bytes);
  // The next event, in order.
  [[nodiscard]] std::optional<SessionEvent> next_event();

  // Says that messages to the client may be compressed so: before the first of them.
  void set_answer_encoding(StreamId stream, std::string_view encoding);
  // Sends one message. Of a call that is over: no effect.
  void send(StreamId stream, std::vector<MessagePart> parts, bool compressed = false);
  // Ends a call with its status, after what was given to send(). Once; again or of a call that is
  // over: no effect. Bytes that the client still sends to it are dropped.
  void finish(StreamId stream, const Status& status);
  // Takes no further message of a call, and lets its client send no more than its window, until
  // resume(), which brings the events of what has come.
  void pause(StreamId stream);
  void resume(StreamId stream);
  // Ends a call without a status.
  void reset(StreamId stream);
  // Faults every call whose message is incomplete.
  void fault_partial(const Refusal& refusal);
  // Tells the peer to begin no more calls here; those that are on their way are served.
  void announce_end();
  // Takes no call any more that has not come.
  void end();

  // Moves what is to be written into `out` until that holds `most` bytes.
  void fill(OutputQueue& out, size_t most);
  // Nothing will come or go any more.
  [[nodiscard]] bool over() const;
  // The client's preface and settings have come.
  [[nodiscard]] bool established() const;
  [[nodiscard]] size_t open_calls() const;
  // Bytes of messages that are not complete.
  [[nodiscard]] size_t partial_bytes() const;

  // How far a call is, for who bounds its pace.
  struct Progress {
    StreamId stream = 0;
    bool receiving = false;  // its message has begun, or its only one is still awaited
    uint64_t received = 0;   // bytes so far
    bool sending = false;    // bytes wait for the peer's windows
    uint64_t sent = 0;       // bytes that went into the output
  };
  void progress(std::vector<Progress>& calls) const;

  struct Impl;  // internal to the .cc, as are its
  struct Callbacks;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::protocol::grpc_wire
