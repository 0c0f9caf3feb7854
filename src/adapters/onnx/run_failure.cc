#include "adapters/onnx/run_failure.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/utf8.h"

namespace baton::adapters::onnx {
namespace {

constexpr size_t kMostClientBytes = 300;
constexpr size_t kMostNameBytes = 60;

// A word that names a place in the library's source, such as "/onnxruntime_src/…/ops.h:560".
bool is_source_place(std::string_view word) {
  constexpr std::array<std::string_view, 4> kEndings = {".h:", ".cc:", ".cpp:", ".cu:"};
  return word.contains("onnxruntime_src") ||
         std::ranges::any_of(kEndings, [&](auto ending) { return word.contains(ending); });
}

// At most so many bytes of valid UTF-8 without control characters.
std::string bounded(std::string_view text, size_t most) {
  std::string out;
  while (!text.empty()) {
    const size_t length = utf8_sequence_length(text);
    const size_t taken = std::max<size_t>(length, 1);
    if (out.size() + taken > most) return out + "…";
    const bool shown = length > 0 && (text.front() < 0 || text.front() >= ' ');
    out.append(shown ? text.substr(0, taken) : "?");
    text.remove_prefix(taken);
  }
  return out;
}

// What stands between two marks; empty when they do not.
std::string_view between(std::string_view text, std::string_view left, std::string_view right) {
  const size_t begin = text.find(left);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + left.size());
  const size_t end = text.find(right);
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end);
}

}  // namespace

std::string text_for_client(std::string_view cause) {
  std::string kept;
  while (!cause.empty()) {
    const size_t end = std::min(cause.find_first_of(" \n\t"), cause.size());
    const std::string_view word = cause.substr(0, end);
    if (!word.empty() && !is_source_place(word)) {
      if (!kept.empty()) kept += ' ';
      kept.append(word);
    }
    if (kept.size() > kMostClientBytes) break;
    cause.remove_prefix(std::min(end + 1, cause.size()));
  }
  return bounded(kept, kMostClientBytes);
}

std::string place_for_log(std::string_view cause) {
  // "Non-zero status code returned while running Gather node. Name:'g' Status Message: …"
  const std::string_view type = between(cause, "while running ", " node.");
  if (type.empty()) return "outside its nodes";
  const std::string_view name = between(cause, " node. Name:'", "'");
  return "in the " + bounded(type, kMostNameBytes) + " node \"" + bounded(name, kMostNameBytes) +
         "\"";
}

void FailureLog::write(const std::string& model, std::string_view cause) {
  const std::lock_guard lock(mutex_);
  const Instant now = clock_.now();
  if (now - second_ >= Duration::s(1)) {
    second_ = now;
    lines_ = 0;
  }
  if (lines_ == kLinesPerSecond) {
    ++left_out_;
    return;
  }
  ++lines_;
  std::string line = "model " + model + ": a run failed " + place_for_log(cause);
  if (left_out_ > 0) {
    line += "; " + std::to_string(std::exchange(left_out_, 0)) + " more since the last line";
  }
  log_.log(ports::LogLevel::kError, std::move(line));
}

}  // namespace baton::adapters::onnx
