// A decision log: no text crashes its reader or what decides again, and neither takes long.

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "sim/replay.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int kMostLines = 2000;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  baton::sim::Replay replay;
  for (int line = 0; line < kMostLines && !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const auto fed = replay.feed(text.substr(0, end));
    if (!fed.has_value()) BATON_CHECK(!fed.error().empty());
    if (!fed.has_value() || !*fed) break;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const baton::sim::ReplayResult result = replay.finish();
  BATON_CHECK(!render_json(result).empty());
  static_cast<void>(render_text(result));
  return 0;
}
