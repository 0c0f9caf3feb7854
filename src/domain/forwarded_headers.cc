#include "domain/forwarded_headers.h"

#include <algorithm>
#include <array>

namespace baton {
namespace {

constexpr std::array<std::string_view, 5> kCredentials = {"authorization", "proxy-authorization",
                                                          "x-api-key", "cookie", "set-cookie"};

bool carries_credentials(std::string_view name) {
  return std::ranges::find(kCredentials, name) != kCredentials.end();
}

// What RFC 9110 lets a name have.
bool is_name_char(char c) {
  constexpr std::string_view kMarks = "!#$%&'+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || kMarks.contains(c);
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

}  // namespace

Result<HeaderPatterns, std::string> HeaderPatterns::parse(
    const std::vector<std::string>& patterns) {
  if (patterns.size() > kMostHeaderPatterns) {
    return fail("more than " + std::to_string(kMostHeaderPatterns) + " patterns");
  }
  HeaderPatterns out;
  for (const std::string& given : patterns) {
    Pattern pattern{lower_case(given)};
    pattern.open = pattern.text.ends_with('*');
    if (pattern.open) pattern.text.pop_back();
    const bool named = pattern.open || !pattern.text.empty();
    if (!named || pattern.text.size() > kMostForwardedNameBytes ||
        !std::ranges::all_of(pattern.text, is_name_char)) {
      return fail("\"" + given + "\" is no name of a header, nor the beginning of one and a \"*\"");
    }
    if (!pattern.open && carries_credentials(pattern.text)) {
      return fail(pattern.text + " carries a caller's credentials and is never kept");
    }
    out.patterns_.push_back(std::move(pattern));
  }
  return out;
}

bool HeaderPatterns::matches(std::string_view name) const {
  const auto fits = [&](const Pattern& pattern) {
    return pattern.open ? name.starts_with(pattern.text) : name == pattern.text;
  };
  return std::ranges::any_of(patterns_, fits) && !carries_credentials(name);
}

void HeaderCollector::add(std::string_view name, std::string_view value) {
  if (!patterns_.matches(name)) return;
  if (found_ == nullptr) found_ = std::make_shared<ForwardedHeaders>();
  auto& headers = found_->headers;
  auto header = std::ranges::find(headers, name, &ForwardedHeaders::Header::name);
  if (header == headers.end()) {
    if (headers.size() == kMostForwardedHeaders || name.size() > kMostForwardedNameBytes) {
      found_->cut = true;
      return;
    }
    header = headers.insert(header, {std::string(name), ""});
  } else {
    header->value += ", ";
  }
  header->value += value.substr(0, kMostForwardedValueBytes + 1);
  if (header->value.size() <= kMostForwardedValueBytes) return;
  header->value.resize(kMostForwardedValueBytes);
  found_->cut = true;
}

}  // namespace baton
