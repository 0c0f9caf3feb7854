// Expands any bytes, whole and in pieces: both ways say the same, and no step makes more than its
// room.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "protocol/compression/zlib_stream.h"

namespace {

using baton::protocol::compression::Encoding;
using baton::protocol::compression::Inflater;

constexpr size_t kMost = 1 << 20;

struct Outcome {
  bool broken = false;
  bool complete = false;
  bool full = false;
  std::string text;
};

void require(bool holds) {
  if (!holds) std::abort();
}

Outcome expand(Encoding encoding, std::string_view body, size_t in, size_t out) {
  Inflater inflater(encoding);
  Outcome outcome;
  std::string room(out, '\0');
  while (!outcome.full) {
    const auto step = inflater.step(body.substr(0, in), room);
    if (!step) {
      outcome.broken = true;
      return outcome;
    }
    require(step->made <= room.size() && step->taken <= body.size());
    outcome.text.append(room, 0, step->made);
    body.remove_prefix(step->taken);
    outcome.full = outcome.text.size() >= kMost;
    if (body.empty() && step->made < room.size()) break;
    require(step->made > 0 || step->taken > 0);
  }
  outcome.complete = inflater.complete();
  outcome.text.resize(std::min(outcome.text.size(), kMost));
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string body(data + 2, data + size);
  for (Encoding encoding : {Encoding::kGzip, Encoding::kDeflate}) {
    const Outcome whole = expand(encoding, body, kMost, 64 << 10);
    const Outcome pieces = expand(encoding, body, data[0] + 1U, data[1] + 1U);
    if (whole.full || pieces.full) continue;  // stopped at different places
    require(whole.broken == pieces.broken && whole.complete == pieces.complete);
    require(whole.broken || whole.text == pieces.text);
  }
  static_cast<void>(baton::protocol::compression::choose_encoding(body));
  static_cast<void>(baton::protocol::compression::parse_content_encoding(body));
  return 0;
}
