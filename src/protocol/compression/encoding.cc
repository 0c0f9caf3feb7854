#include "protocol/compression/encoding.h"

#include <algorithm>
#include <array>

#include "base/quality.h"

namespace baton::protocol::compression {
namespace {

constexpr std::string_view kBlanks = " \t";

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same(std::string_view text, std::string_view lower_case) {
  return std::ranges::equal(text, lower_case, {}, lower);
}

struct Wish {
  std::string_view coding;
  int weight = 1000;
};

Wish parse_wish(std::string_view item) {
  const size_t end = item.find(';');
  Wish wish{.coding = trim(item.substr(0, end))};
  if (end == std::string_view::npos) return wish;
  const std::string_view parameter = trim(item.substr(end + 1));
  const bool is_weight = parameter.starts_with("q=") || parameter.starts_with("Q=");
  wish.weight = is_weight ? quality_thousandths(parameter.substr(2)) : 0;
  return wish;
}

constexpr std::array kByPreference = {Encoding::kGzip, Encoding::kDeflate, Encoding::kIdentity};

}  // namespace

std::string_view encoding_name(Encoding encoding) {
  constexpr std::array<std::string_view, 3> kNames = {"identity", "gzip", "deflate"};
  return kNames[static_cast<size_t>(encoding)];
}

std::optional<Encoding> parse_content_encoding(std::string_view value) {
  const std::string_view name = trim(value);
  for (Encoding encoding : kByPreference) {
    if (same(name, encoding_name(encoding))) return encoding;
  }
  if (same(name, "x-gzip")) return Encoding::kGzip;
  return std::nullopt;
}

Encoding choose_encoding(std::string_view accept) {
  std::array<int, 3> weights = {-1, -1, -1};  // by encoding; -1: not named
  int others = -1;                            // of "*"
  while (!accept.empty()) {
    const size_t end = accept.find(',');
    const Wish wish = parse_wish(accept.substr(0, end));
    accept.remove_prefix(end == std::string_view::npos ? accept.size() : end + 1);
    if (wish.coding == "*") {
      others = wish.weight;
    } else if (const auto encoding = parse_content_encoding(wish.coding)) {
      weights[static_cast<size_t>(*encoding)] = wish.weight;
    }
  }
  Encoding best = Encoding::kIdentity;
  int best_weight = 0;
  for (Encoding encoding : kByPreference) {
    const int named = weights[static_cast<size_t>(encoding)];
    const int weight = named >= 0 ? named : others;
    if (weight > best_weight) {
      best = encoding;
      best_weight = weight;
    }
  }
  return best;
}

}  // namespace baton::protocol::compression
