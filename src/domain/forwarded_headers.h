#pragma once
// Which of a request's headers are kept with it, and those that were (ADR 0015).

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace baton {

inline constexpr size_t kMostForwardedHeaders = 16;      // of one request
inline constexpr size_t kMostForwardedValueBytes = 256;  // of one header, repeated ones together
inline constexpr size_t kMostForwardedNameBytes = 64;
inline constexpr size_t kMostHeaderPatterns = 32;

// In the order in which they came; a header that stands several times once, its values joined by
// ", ".
struct ForwardedHeaders {
  struct Header {
    std::string name;  // lower case
    std::string value;
  };
  std::vector<Header> headers;
  bool cut = false;  // something that matched did not fit
};

// Names, or beginnings of names with a "*" behind them; in any case. Never those that carry a
// caller's credentials.
class HeaderPatterns {
 public:
  HeaderPatterns() = default;
  // Error: what is wrong with a pattern.
  [[nodiscard]] static Result<HeaderPatterns, std::string> parse(
      const std::vector<std::string>& patterns);
  [[nodiscard]] bool empty() const { return patterns_.empty(); }
  // `name` in lower case.
  [[nodiscard]] bool matches(std::string_view name) const;

 private:
  struct Pattern {
    std::string text;  // lower case, without the "*"
    bool open = false;
  };
  std::vector<Pattern> patterns_;
};

// Takes a request's headers one after the other.
class HeaderCollector {
 public:
  explicit HeaderCollector(const HeaderPatterns& patterns) : patterns_(patterns) {}
  void add(std::string_view name, std::string_view value);  // the name in lower case
  // Null when none matched.
  [[nodiscard]] std::shared_ptr<const ForwardedHeaders> take() { return std::move(found_); }

 private:
  const HeaderPatterns& patterns_;
  std::shared_ptr<ForwardedHeaders> found_;
};

}  // namespace baton
