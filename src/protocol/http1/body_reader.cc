#include "protocol/http1/body_reader.h"

#include <algorithm>

namespace baton::protocol::http1 {
namespace {

constexpr size_t kDirectBytes = 2048;  // missing bytes from which reading skips the input buffer
constexpr size_t kDirectReadMax = 256 << 10;  // one read, so that one client does not hold the loop
constexpr size_t kFirstBytes = 1 << 20;       // reserved at once for an announced length
constexpr size_t kUnknownFirstBytes = 4096;
constexpr char kEmpty[kBodyPadding] = {};  // an empty body has its padding as well

CodecError no_memory() {
  return {503, "There is no memory for the request body at the moment."};
}

}  // namespace

void BodyReader::start_length(uint64_t length) {
  framing_ = Framing::kLength;
  limit_ = length;
}

void BodyReader::start_chunked(const ChunkLimits& limits) {
  framing_ = Framing::kChunked;
  limit_ = limits.body_bytes;
  chunks_.emplace(limits);
}

void BodyReader::start_until_end(uint64_t limit) {
  framing_ = Framing::kUntilEnd;
  limit_ = limit;
}

uint64_t BodyReader::left() const {
  return framing_ == Framing::kChunked ? chunks_->data_left() : limit_ - received();
}

std::span<char> BodyReader::prepare(const InputBuffer& input) {
  if (!input.empty() || buffer_ == nullptr || left() < kDirectBytes) return {};
  const size_t want = std::min<uint64_t>(left(), kDirectReadMax);
  // Without memory the bytes go through the input buffer, where the shortage is answered.
  if (!buffer_->grow(buffer_->size() + want, limit_)) return {};
  return buffer_->room().first(want);
}

void BodyReader::commit(size_t bytes) {
  buffer_->commit(bytes);
  if (framing_ == Framing::kChunked) chunks_->take_data(bytes);
}

// False when there is no memory.
bool BodyReader::move(InputBuffer& input) {
  const size_t bytes = std::min<uint64_t>(input.size(), left());
  if (buffer_ == nullptr) {
    buffer_ = std::make_shared<BodyBuffer>();
    const size_t first =
        framing_ == Framing::kLength ? std::min<uint64_t>(limit_, kFirstBytes) : kUnknownFirstBytes;
    if (!buffer_->reserve(std::max(first, bytes))) return false;
  }
  if (!buffer_->grow(buffer_->size() + bytes, limit_)) return false;
  buffer_->append(input.view().substr(0, bytes));
  input.consume(bytes);
  if (framing_ == Framing::kChunked) chunks_->take_data(bytes);
  return true;
}

BodyReader::Event BodyReader::refuse(CodecError error) {
  error_ = std::move(error);
  return Event::kRefused;
}

BodyReader::Event BodyReader::next(InputBuffer& input) {
  if (framing_ == Framing::kChunked) return next_chunked(input);
  if (left() > 0 && !move(input)) return refuse(no_memory());
  if (framing_ == Framing::kLength) return left() > 0 ? Event::kNeedMore : Event::kComplete;
  if (left() > 0 || input.empty()) return Event::kNeedMore;
  return refuse({413, "The body is larger than " + std::to_string(limit_) + " bytes."});
}

BodyReader::Event BodyReader::next_chunked(InputBuffer& input) {
  while (true) {
    size_t consumed = 0;
    const ChunkDecoder::Step step = chunks_->step(input.view(), consumed);
    input.consume(consumed);
    if (step == ChunkDecoder::Step::kRefused) return refuse(chunks_->error());
    if (step == ChunkDecoder::Step::kDone) return Event::kComplete;
    if (step == ChunkDecoder::Step::kNeedMore) {
      if (consumed == 0) return Event::kNeedMore;
      continue;
    }
    if (!move(input)) return refuse(no_memory());
    if (left() > 0) return Event::kNeedMore;
  }
}

BodyReader::Body BodyReader::take() {
  Body body{.bytes = {kEmpty, 0}, .storage = nullptr};
  if (buffer_ != nullptr) {
    body.bytes = buffer_->finish();
    body.storage = std::move(buffer_);
    buffer_ = nullptr;
  }
  chunks_.reset();
  start_length(0);
  return body;
}

}  // namespace baton::protocol::http1
