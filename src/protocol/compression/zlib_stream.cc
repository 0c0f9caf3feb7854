#include "protocol/compression/zlib_stream.h"

#include <zlib.h>

#include <algorithm>

#include "base/check.h"

namespace baton::protocol::compression {
namespace {

constexpr int kWindowBits = 15;
constexpr int kGzipFormat = 16;          // added to the window's bits
constexpr size_t kMostAtOnce = 1 << 30;  // zlib counts in 32 bits
constexpr int kLevel = 1;
constexpr int kMemoryLevel = 8;

int format_of(Encoding encoding) {
  BATON_CHECK(encoding != Encoding::kIdentity);
  return encoding == Encoding::kGzip ? kWindowBits + kGzipFormat : kWindowBits;
}

// zlib reads its input and declares it writable.
Bytef* input_of(const void* bytes) {
  return static_cast<Bytef*>(const_cast<void*>(bytes));
}

Bytef* output_of(void* bytes) {
  return static_cast<Bytef*>(bytes);
}

class Deflater {
 public:
  explicit Deflater(Encoding encoding) {
    const int made = deflateInit2(&stream_, kLevel, Z_DEFLATED, format_of(encoding), kMemoryLevel,
                                  Z_DEFAULT_STRATEGY);
    BATON_CHECK(made == Z_OK);
  }
  ~Deflater() { deflateEnd(&stream_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  // False: `out` would grow beyond `limit`.
  bool add(std::span<const std::byte> bytes, std::string& out, size_t limit) {
    while (!bytes.empty()) {
      const auto piece = bytes.first(std::min(bytes.size(), kMostAtOnce));
      stream_.next_in = input_of(piece.data());
      stream_.avail_in = static_cast<uInt>(piece.size());
      if (!run(Z_NO_FLUSH, out, limit)) return false;
      bytes = bytes.subspan(piece.size());
    }
    return true;
  }
  bool finish(std::string& out, size_t limit) { return run(Z_FINISH, out, limit); }

 private:
  bool run(int flush, std::string& out, size_t limit) {
    constexpr size_t kStep = 64 << 10;
    while (true) {
      const size_t before = out.size();
      const size_t room = std::min(kStep, limit - before);
      if (room == 0) return false;
      out.resize(before + room);
      stream_.next_out = output_of(out.data() + before);
      stream_.avail_out = static_cast<uInt>(room);
      const int status = deflate(&stream_, flush);
      out.resize(before + room - stream_.avail_out);
      if (status == Z_STREAM_END) return true;
      if (flush == Z_NO_FLUSH && stream_.avail_in == 0 && stream_.avail_out > 0) return true;
    }
  }

  z_stream stream_{};
};

}  // namespace

struct Inflater::Stream {
  explicit Stream(Encoding encoding) { BATON_CHECK(inflateInit2(&z, format_of(encoding)) == Z_OK); }
  ~Stream() { inflateEnd(&z); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  z_stream z{};
};

Inflater::Inflater(Encoding encoding)
    : encoding_(encoding), stream_(std::make_unique<Stream>(encoding)) {}

Inflater::~Inflater() = default;

std::optional<Inflater::Step> Inflater::step(std::string_view in, std::span<char> room) {
  z_stream& z = stream_->z;
  Step step;
  while (true) {
    const std::string_view rest = in.substr(step.taken);
    const auto free = room.subspan(step.made);
    if (complete_) {
      if (rest.empty()) return step;
      // Only gzip's format lets another one follow.
      if (encoding_ != Encoding::kGzip || inflateReset(&z) != Z_OK) return std::nullopt;
      complete_ = false;
    }
    const size_t given = std::min(rest.size(), kMostAtOnce);
    const size_t wanted = std::min(free.size(), kMostAtOnce);
    if (wanted == 0) return step;
    z.next_in = input_of(rest.data());
    z.avail_in = static_cast<uInt>(given);
    z.next_out = output_of(free.data());
    z.avail_out = static_cast<uInt>(wanted);
    const int status = inflate(&z, Z_NO_FLUSH);
    step.taken += given - z.avail_in;
    step.made += wanted - z.avail_out;
    complete_ = status == Z_STREAM_END;
    if (complete_) continue;
    if (status == Z_BUF_ERROR) return step;  // all input is taken, and more is needed
    if (status != Z_OK) return std::nullopt;
    if (step.taken == in.size() && z.avail_out > 0) return step;
  }
}

std::optional<std::string> compress(Encoding encoding,
                                    std::span<const std::span<const std::byte>> pieces) {
  size_t size = 0;
  for (const auto piece : pieces) size += piece.size();
  Deflater deflater(encoding);
  std::string out;
  for (const auto piece : pieces) {
    if (!deflater.add(piece, out, size)) return std::nullopt;
  }
  if (!deflater.finish(out, size) || out.size() >= size) return std::nullopt;
  return out;
}

}  // namespace baton::protocol::compression
