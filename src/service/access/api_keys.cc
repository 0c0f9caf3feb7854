#include "service/access/api_keys.h"

#include <algorithm>
#include <vector>

namespace baton::service {
namespace {

constexpr std::string_view kBlank = " \t\r\v\f";

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t start = line.find_first_not_of(kBlank); start != std::string_view::npos;
       start = line.find_first_not_of(kBlank)) {
    line.remove_prefix(start);
    const size_t length = std::min(line.find_first_of(kBlank), line.size());
    words.push_back(line.substr(0, length));
    line.remove_prefix(length);
  }
  return words;
}

}  // namespace

Result<ApiKeys, ApiKeysError> parse_api_keys(std::string_view text) {
  ApiKeys keys;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const auto words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty() || words[0].starts_with('#')) continue;
    if (words.size() != 2) {
      return fail(ApiKeysError{
          number, "expected two words, \"KEY TENANT\", found " + std::to_string(words.size())});
    }
    if (!keys.emplace(words[0], words[1]).second) {
      return fail(ApiKeysError{
          number, "the key of tenant " + std::string(words[1]) + " stands on an earlier line"});
    }
  }
  if (keys.empty()) return fail(ApiKeysError{0, "there is no \"KEY TENANT\" line"});
  return keys;
}

}  // namespace baton::service
