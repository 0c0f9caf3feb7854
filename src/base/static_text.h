#pragma once
// Text that lasts as long as the program, as a type: made from constant expressions alone, so that
// what holds it never points into a string that has ended.

#include <string_view>

namespace baton {

class StaticText {
 public:
  constexpr StaticText() = default;
  // Not explicit: a literal is the usual value. A compile error for text that is made at run time.
  consteval StaticText(const char* text) : text_(text) {}
  consteval StaticText(std::string_view text) : text_(text) {}

  constexpr operator std::string_view() const { return text_; }
  [[nodiscard]] constexpr std::string_view view() const { return text_; }
  [[nodiscard]] constexpr bool empty() const { return text_.empty(); }
  friend constexpr bool operator==(const StaticText& text, std::string_view other) {
    return text.text_ == other;
  }

 private:
  std::string_view text_;
};

}  // namespace baton
