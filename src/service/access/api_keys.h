#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace baton::service {

// Tenants by key.
using ApiKeys = std::map<std::string, std::string, std::less<>>;

struct ApiKeysError {
  size_t line = 0;      // 1-based; 0: of the whole text
  std::string message;  // never holds a key
};

// Reads lines of two words, "KEY TENANT". Blank lines, and lines whose first word begins with '#',
// are passed over. Errors: a line with another number of words, a key that stands twice, a text
// without keys.
[[nodiscard]] Result<ApiKeys, ApiKeysError> parse_api_keys(std::string_view text);

}  // namespace baton::service
