#include "protocol/grpc_wire/server_session.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "protocol/grpc_wire/frame_filter.h"
#include "protocol/grpc_wire/message_reader.h"

namespace baton::protocol::grpc_wire {
namespace {

using Kind = SessionEvent::Kind;
using Headers = std::vector<std::pair<std::string, std::string>>;

constexpr size_t kFrameHead = 9;
constexpr size_t kMostContinuations = 8;
constexpr size_t kFieldCost = 32;         // what RFC 9113, 6.5.2 adds for each field
constexpr size_t kMostEncodingName = 64;  // of one that a client sent, in our words
constexpr std::string_view kContentType = "application/grpc";

std::string_view text_of(const uint8_t* bytes, size_t size) {
  return as_chars(std::as_bytes(std::span(bytes, size)));
}

nghttp2_nv field(std::string_view name, std::string_view value) {
  // The library takes its own copy and changes nothing.
  const auto bytes = [](std::string_view text) {
    return const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

std::vector<nghttp2_nv> fields_of(const Headers& headers) {
  std::vector<nghttp2_nv> fields;
  fields.reserve(headers.size());
  for (const auto& [name, value] : headers) fields.push_back(field(name, value));
  return fields;
}

void add_status(const Status& status, Headers& headers) {
  headers.emplace_back("grpc-status", std::to_string(static_cast<int>(status.code)));
  if (!status.message.empty()) headers.emplace_back("grpc-message", encode_message(status.message));
  headers.insert(headers.end(), status.metadata.begin(), status.metadata.end());
}

bool is_grpc(std::string_view type) {
  if (!type.starts_with(kContentType)) return false;
  const std::string_view rest = type.substr(kContentType.size());
  return rest.empty() || rest.front() == '+' || rest.front() == ';';
}

struct Stream {
  StreamId id = 0;
  std::unique_ptr<CallHead> head = std::make_unique<CallHead>();
  std::string method;
  size_t metadata_bytes = 0;
  bool told = false;     // as a call
  bool ignored = false;  // what still comes is dropped
  bool half_closed = false;
  bool had_message = false;
  MessageReader reader;
  bool paused = false;
  std::string held;    // what came while it is paused; at most the stream's window
  size_t counted = 0;  // of the reader's and the held bytes, in the session's sum
  uint64_t received = 0;

  OutputQueue out;
  uint64_t sent = 0;
  Storage kept;
  std::string encoding;     // of compressed messages to the client; empty: there are none
  bool responding = false;  // its response has been submitted
  bool deferred = false;    // the library waits to be told of more to send
  bool owes_sent = false;
  std::optional<Status> status;
  bool complete = false;
};

}  // namespace

struct ServerSession::Impl {
  explicit Impl(SessionOptions given);
  ~Impl() { nghttp2_session_del(session); }

  Stream* find(StreamId id) {
    const auto found = streams.find(id);
    return found == streams.end() ? nullptr : &found->second;
  }
  SessionEvent& tell(Kind kind, StreamId id);
  void fault(Stream& stream, Refusal refusal);
  void drop_input(Stream& stream);
  void count_partial(Stream& stream);
  std::string consume_held(Stream& stream);
  void add_field(Stream& stream, std::string_view name, std::string_view value);
  void open(Stream& stream);
  void refuse_http(Stream& stream, const char* status, std::string why);
  [[nodiscard]] std::string accepted_encodings() const;
  void take_data(Stream& stream, std::span<const char> bytes);
  void tell_message(Stream& stream);
  void half_close(Stream& stream);
  void respond(Stream& stream);
  void end_with_trailers(Stream& stream);

  const SessionOptions options;
  nghttp2_session* session = nullptr;
  FrameFilter filter;
  std::map<StreamId, Stream> streams;
  std::deque<SessionEvent> events;
  size_t partial = 0;  // bytes of messages that are not complete
  bool established = false;
  OutputQueue* target = nullptr;  // within fill()
  size_t target_most = 0;
};

namespace {

ServerSession::Impl& impl_of(void* user) {
  return *static_cast<ServerSession::Impl*>(user);
}

}  // namespace

// The library's callbacks. Their signatures are the library's.
struct ServerSession::Callbacks {
  static int on_begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    Stream& stream = impl_of(user).streams[frame->hd.stream_id];
    stream.id = frame->hd.stream_id;
    return 0;
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                       size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                       void* user) {
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;  // trailers of a client mean nothing
    Stream* stream = impl_of(user).find(frame->hd.stream_id);
    if (stream == nullptr) return 0;
    impl_of(user).add_field(*stream, text_of(name, name_size), text_of(value, value_size));
    return 0;
  }

  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Impl& impl = impl_of(user);
    if (frame->hd.type == NGHTTP2_SETTINGS) impl.established = true;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    Stream* stream = impl.find(frame->hd.stream_id);
    if (stream == nullptr) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
      impl.open(*stream);
    }
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) impl.half_close(*stream);
    return 0;
  }

  static int on_data(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size,
                     void* user) {
    Impl& impl = impl_of(user);
    const std::string_view text = text_of(data, size);
    Stream* stream = impl.find(id);
    if (stream != nullptr && stream->paused && !stream->ignored) {
      stream->held.append(text);
      impl.count_partial(*stream);
      return 0;
    }
    if (stream != nullptr) {
      impl.take_data(*stream, {text.data(), text.size()});
      impl.count_partial(*stream);
    }
    nghttp2_session_consume(impl.session, id, size);
    return 0;
  }

  static int on_sent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    const bool last =
        frame->hd.type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    Stream* stream = last ? impl_of(user).find(frame->hd.stream_id) : nullptr;
    if (stream == nullptr) return 0;
    stream->complete = true;
    // The client need not send what nobody reads.
    if (!stream->half_closed) {
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_NO_ERROR);
    }
    return 0;
  }

  static int on_close(nghttp2_session*, int32_t id, uint32_t, void* user) {
    Impl& impl = impl_of(user);
    Stream* stream = impl.find(id);
    if (stream == nullptr) return 0;
    impl.drop_input(*stream);
    if (stream->told) impl.tell(Kind::kClosed, id).complete = stream->complete;
    impl.streams.erase(id);
    return 0;
  }

  // How many of a call's bytes go into the next frame.
  static ssize_t read(nghttp2_session*, int32_t id, uint8_t*, size_t most, uint32_t* flags,
                      nghttp2_data_source*, void* user) {
    Stream* stream = impl_of(user).find(id);
    if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const size_t count = std::min(most, stream->out.size());
    if (count == 0 && !stream->status) {
      stream->deferred = true;
      if (std::exchange(stream->owes_sent, false)) impl_of(user).tell(Kind::kSent, id);
      return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (count == stream->out.size() && stream->status) {
      *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
      impl_of(user).end_with_trailers(*stream);
    }
    return static_cast<ssize_t>(count);
  }

  static int send_data(nghttp2_session*, nghttp2_frame* frame, const uint8_t* head, size_t size,
                       nghttp2_data_source*, void* user) {
    Impl& impl = impl_of(user);
    if (impl.target->size() >= impl.target_most) return NGHTTP2_ERR_WOULDBLOCK;
    Stream* stream = impl.find(frame->hd.stream_id);
    if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const std::string_view text = text_of(head, kFrameHead);
    impl.target->copy({text.data(), text.size()});
    stream->out.move_to(*impl.target, size);
    stream->sent += size;
    return 0;
  }
};

ServerSession::Impl::Impl(SessionOptions given) : options(std::move(given)) {
  nghttp2_session_callbacks* calls = nullptr;
  nghttp2_option* option = nullptr;
  BATON_CHECK(nghttp2_session_callbacks_new(&calls) == 0 && nghttp2_option_new(&option) == 0);
  nghttp2_session_callbacks_set_on_begin_headers_callback(calls, Callbacks::on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(calls, Callbacks::on_header);
  nghttp2_session_callbacks_set_on_frame_recv_callback(calls, Callbacks::on_frame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, Callbacks::on_data);
  nghttp2_session_callbacks_set_on_frame_send_callback(calls, Callbacks::on_sent);
  nghttp2_session_callbacks_set_on_stream_close_callback(calls, Callbacks::on_close);
  nghttp2_session_callbacks_set_send_data_callback(calls, Callbacks::send_data);
  nghttp2_option_set_no_closed_streams(option, 1);
  nghttp2_option_set_no_auto_window_update(option, 1);  // a paused call's window stays shut
  // The library's own number; said here so that one without this bound is not built with.
  nghttp2_option_set_max_continuations(option, kMostContinuations);
  nghttp2_option_set_stream_reset_rate_limit(option, options.resets_burst,
                                             options.resets_per_second);
  BATON_CHECK(nghttp2_session_server_new2(&session, calls, this, option) == 0);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(calls);
  const std::array<nghttp2_settings_entry, 3> settings = {{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options.streams_max},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options.stream_window},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<uint32_t>(options.metadata_bytes_max)},
  }};
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0,
                                        static_cast<int32_t>(options.connection_window));
}

SessionEvent& ServerSession::Impl::tell(Kind kind, StreamId id) {
  SessionEvent& event = events.emplace_back();
  event.kind = kind;
  event.stream = id;
  return event;
}

void ServerSession::Impl::fault(Stream& stream, Refusal refusal) {
  if (stream.ignored) return;
  drop_input(stream);
  tell(Kind::kFault, stream.id).refusal = std::move(refusal);
}

void ServerSession::Impl::drop_input(Stream& stream) {
  stream.ignored = true;
  stream.reader.drop();
  consume_held(stream);
  count_partial(stream);
}

void ServerSession::Impl::count_partial(Stream& stream) {
  const size_t now = stream.reader.partial() + stream.held.size();
  partial = partial - stream.counted + now;
  stream.counted = now;
}

std::string ServerSession::Impl::consume_held(Stream& stream) {
  if (!stream.held.empty()) nghttp2_session_consume(session, stream.id, stream.held.size());
  return std::exchange(stream.held, {});
}

void ServerSession::Impl::add_field(Stream& stream, std::string_view name, std::string_view value) {
  stream.metadata_bytes += name.size() + value.size() + kFieldCost;
  if (stream.metadata_bytes > options.metadata_bytes_max) return;  // open() says so
  if (name == ":path") {
    stream.head->path = value;
  } else if (name == ":method") {
    stream.method = value;
  } else if (!name.starts_with(':')) {
    stream.head->metadata.add(name, value);
  }
}

void ServerSession::Impl::refuse_http(Stream& stream, const char* status, std::string why) {
  stream.ignored = true;
  tell(Kind::kRefused, stream.id).refusal = {EndReason::kInvalid, std::move(why), {}};
  const nghttp2_nv head = field(":status", status);
  nghttp2_submit_response(session, stream.id, &head, 1, nullptr);
}

void ServerSession::Impl::open(Stream& stream) {
  const bool overflow = stream.metadata_bytes > options.metadata_bytes_max;
  const Metadata& metadata = stream.head->metadata;
  if (!overflow && stream.method != "POST") {
    return refuse_http(stream, "405", "a gRPC call is a POST");
  }
  if (!overflow && !is_grpc(metadata.find("content-type").value_or(""))) {
    return refuse_http(stream, "415", "the content type is not application/grpc");
  }
  const std::string encoding(metadata.find("grpc-encoding").value_or("identity"));
  const auto given = metadata.find("grpc-timeout");
  const auto timeout = parse_timeout(given.value_or("1S"));
  if (given && timeout.has_value()) stream.head->timeout = *timeout;
  stream.reader.set_limit(options.message_limit ? options.message_limit(stream.head->path) : 0);
  stream.told = true;
  tell(Kind::kCall, stream.id).head = std::move(stream.head);
  if (overflow) {
    fault(stream, {EndReason::kTooLarge,
                   "the call's metadata is larger than " +
                       std::to_string(options.metadata_bytes_max) + " bytes",
                   {}});
  } else if (!timeout.has_value()) {
    fault(stream, {EndReason::kInvalid, timeout.error(), {}});
  } else if (std::ranges::find(options.encodings, encoding) != options.encodings.end()) {
    stream.reader.allow_compressed();
  } else if (encoding != "identity") {
    fault(stream, {EndReason::kUnsupported,
                   "messages compressed with " + encoding.substr(0, kMostEncodingName) +
                       " are not read; send " + accepted_encodings(),
                   {}});
  }
}

std::string ServerSession::Impl::accepted_encodings() const {
  std::string names = "identity";
  for (const std::string& encoding : options.encodings) names += "," + encoding;
  return names;
}

void ServerSession::Impl::tell_message(Stream& stream) {
  stream.had_message = true;
  SessionEvent& event = tell(Kind::kMessage, stream.id);
  event.compressed = stream.reader.compressed();
  event.message = stream.reader.take();
}

void ServerSession::Impl::take_data(Stream& stream, std::span<const char> bytes) {
  stream.received += bytes.size();
  while (!stream.ignored) {
    switch (stream.reader.read(bytes)) {
      case MessageReader::Step::kMore:
        return;
      case MessageReader::Step::kMessage:
        tell_message(stream);
        if (bytes.empty()) return;
        break;
      case MessageReader::Step::kTooLarge:
        return fault(stream, {EndReason::kTooLarge,
                              "the message has " + std::to_string(stream.reader.announced()) +
                                  " bytes; the limit is " + std::to_string(stream.reader.limit()),
                              {}});
      case MessageReader::Step::kCompressed:
        return fault(stream,
                     {EndReason::kInvalid,
                      "the message is marked as compressed, and the call has no grpc-encoding",
                      {}});
      case MessageReader::Step::kMalformed:
        return fault(stream, {EndReason::kInvalid, "the message's prefix is malformed", {}});
    }
  }
}

void ServerSession::Impl::half_close(Stream& stream) {
  stream.half_closed = true;
  if (!stream.told || stream.ignored || stream.paused) return;
  if (stream.reader.partial() > 0) {
    return fault(stream, {EndReason::kInvalid, "the call ends within a message", {}});
  }
  tell(Kind::kHalfClose, stream.id);
}

void ServerSession::Impl::respond(Stream& stream) {
  stream.responding = true;
  const std::array<nghttp2_nv, 3> head = {field(":status", "200"),
                                          field("content-type", kContentType),
                                          field("grpc-encoding", stream.encoding)};
  nghttp2_data_provider provider{};
  provider.read_callback = Callbacks::read;
  const size_t fields = stream.encoding.empty() ? head.size() - 1 : head.size();
  nghttp2_submit_response(session, stream.id, head.data(), fields, &provider);
}

void ServerSession::Impl::end_with_trailers(Stream& stream) {
  Headers trailers;
  add_status(*stream.status, trailers);
  const auto fields = fields_of(trailers);
  nghttp2_submit_trailer(session, stream.id, fields.data(), fields.size());
}

ServerSession::ServerSession(SessionOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

ServerSession::~ServerSession() = default;

bool ServerSession::receive(std::span<const char> bytes) {
  return impl_->filter.feed(bytes, [this](std::span<const char> part) {
    return nghttp2_session_mem_recv(impl_->session, reinterpret_cast<const uint8_t*>(part.data()),
                                    part.size()) >= 0;
  });
}

std::optional<SessionEvent> ServerSession::next_event() {
  if (impl_->events.empty()) return std::nullopt;
  SessionEvent event = std::move(impl_->events.front());
  impl_->events.pop_front();
  return event;
}

void ServerSession::set_answer_encoding(StreamId id, std::string_view encoding) {
  if (Stream* stream = impl_->find(id)) stream->encoding = encoding;
}

void ServerSession::send(StreamId id, std::vector<MessagePart> parts, bool compressed) {
  Stream* stream = impl_->find(id);
  if (stream == nullptr || stream->status) return;
  size_t size = 0;
  for (const MessagePart& part : parts) size += part.text.size() + part.view.size();
  BATON_CHECK(size <= UINT32_MAX);
  BATON_CHECK(!compressed || !stream->encoding.empty());
  stream->out.copy(message_prefix(static_cast<uint32_t>(size), compressed));
  for (MessagePart& part : parts) {
    stream->out.copy(part.text);
    if (part.view.empty() && part.keep != nullptr) {
      stream->kept = std::move(part.keep);
    } else {
      stream->out.refer(part.view, std::move(part.keep));
    }
  }
  stream->owes_sent = true;
  if (!stream->responding) return impl_->respond(*stream);
  if (std::exchange(stream->deferred, false)) nghttp2_session_resume_data(impl_->session, id);
}

void ServerSession::finish(StreamId id, const Status& status) {
  Stream* stream = impl_->find(id);
  if (stream == nullptr || stream->status) return;
  stream->status = status;
  stream->owes_sent = false;
  impl_->drop_input(*stream);
  if (stream->responding) {
    if (std::exchange(stream->deferred, false)) nghttp2_session_resume_data(impl_->session, id);
    return;
  }
  stream->responding = true;
  Headers headers = {{":status", "200"}, {"content-type", std::string(kContentType)}};
  if (status.code == StatusCode::kUnimplemented) {
    headers.emplace_back("grpc-accept-encoding", impl_->accepted_encodings());
  }
  add_status(status, headers);
  const auto fields = fields_of(headers);
  nghttp2_submit_response(impl_->session, id, fields.data(), fields.size(), nullptr);
}

void ServerSession::pause(StreamId id) {
  if (Stream* stream = impl_->find(id)) stream->paused = true;
}

void ServerSession::resume(StreamId id) {
  Stream* stream = impl_->find(id);
  if (stream == nullptr || !std::exchange(stream->paused, false)) return;
  const std::string held = impl_->consume_held(*stream);
  impl_->take_data(*stream, held);
  impl_->count_partial(*stream);
  if (stream->half_closed) impl_->half_close(*stream);
}

void ServerSession::reset(StreamId id) {
  if (impl_->find(id) == nullptr) return;
  nghttp2_submit_rst_stream(impl_->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
}

void ServerSession::fault_partial(const Refusal& refusal) {
  for (auto& [id, stream] : impl_->streams) {
    if (stream.told && !stream.ignored && stream.reader.partial() > 0) {
      impl_->fault(stream, refusal);
    }
  }
}

void ServerSession::announce_end() {
  nghttp2_submit_shutdown_notice(impl_->session);
}

void ServerSession::end() {
  nghttp2_submit_goaway(impl_->session, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(impl_->session), NGHTTP2_NO_ERROR,
                        nullptr, 0);
}

void ServerSession::fill(OutputQueue& out, size_t most) {
  impl_->target = &out;
  impl_->target_most = most;
  while (out.size() < most) {
    const uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(impl_->session, &data);
    if (size <= 0) break;
    const std::string_view text = text_of(data, static_cast<size_t>(size));
    out.copy({text.data(), text.size()});
  }
  impl_->target = nullptr;
}

bool ServerSession::over() const {
  return nghttp2_session_want_read(impl_->session) == 0 &&
         nghttp2_session_want_write(impl_->session) == 0;
}

bool ServerSession::established() const {
  return impl_->established;
}

size_t ServerSession::open_calls() const {
  return impl_->streams.size();
}

size_t ServerSession::partial_bytes() const {
  return impl_->partial;
}

void ServerSession::progress(std::vector<Progress>& calls) const {
  calls.clear();
  for (const auto& [id, stream] : impl_->streams) {
    const bool awaited = !stream.had_message || stream.reader.partial() > 0;
    calls.push_back(
        {.stream = id,
         .receiving = !stream.half_closed && !stream.ignored && !stream.paused && awaited,
         .received = stream.received + stream.metadata_bytes,
         .sending = !stream.out.empty() || (stream.status && !stream.complete),
         .sent = stream.sent});
  }
}

}  // namespace baton::protocol::grpc_wire
