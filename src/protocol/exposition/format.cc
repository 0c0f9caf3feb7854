#include "protocol/exposition/format.h"

#include <algorithm>
#include <array>

#include "base/quality.h"

namespace baton::protocol::exposition {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same(std::string_view text, std::string_view lower_case) {
  return std::ranges::equal(text, lower_case, {}, lower);
}

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Takes the part before `separator` off the front, trimmed.
std::string_view take(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view part = trim(text.substr(0, end));
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

struct MediaRange {
  std::string_view type;
  std::string_view version = "";  // empty: any
  int weight = 1000;              // thousandths
};

MediaRange parse_range(std::string_view item) {
  MediaRange range{.type = take(item, ';')};
  while (!item.empty()) {
    std::string_view value = take(item, ';');
    const std::string_view name = take(value, '=');
    value = trim(value);
    if (value.size() > 1 && value.starts_with('"') && value.ends_with('"')) {
      value = value.substr(1, value.size() - 2);
    }
    if (same(name, "version")) range.version = value;
    if (same(name, "q")) range.weight = quality_thousandths(value);
  }
  return range;
}

}  // namespace

StaticText content_type(Format format) {
  if (format == Format::kText) return "text/plain; version=0.0.4; charset=utf-8";
  return "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

Format choose_format(std::string_view accept) {
  constexpr std::array<std::string_view, 3> kText = {"text/plain", "text/*", "*/*"};
  std::array<int, kText.size()> text = {-1, -1, -1};  // -1: not named
  int open_metrics = 0;
  while (!accept.empty()) {
    const MediaRange range = parse_range(take(accept, ','));
    const bool is_ours = range.version.empty() || range.version == "1.0.0";
    if (same(range.type, "application/openmetrics-text") && is_ours) {
      open_metrics = std::max(open_metrics, range.weight);
    }
    for (size_t i = 0; i < kText.size(); ++i) {
      if (same(range.type, kText[i])) text[i] = std::max(text[i], range.weight);
    }
  }
  // The most specific range that names the text is its weight.
  const auto named = std::ranges::find_if(text, [](int weight) { return weight >= 0; });
  const int text_weight = named == text.end() ? 0 : *named;
  return open_metrics > 0 && open_metrics >= text_weight ? Format::kOpenMetrics : Format::kText;
}

}  // namespace baton::protocol::exposition
