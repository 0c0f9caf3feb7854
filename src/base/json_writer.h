#pragma once
// Appends JSON to a string: the one writer for responses, logs and command output.

#include <cstdint>
#include <string>
#include <string_view>

namespace baton {

// Commas are placed by the writer; nesting is the caller's to balance. Not thread-safe.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& string(std::string_view text);  // escapes; invalid UTF-8 becomes U+FFFD
  JsonWriter& number(int64_t value);
  JsonWriter& number(uint64_t value);
  JsonWriter& number(int value) { return number(static_cast<int64_t>(value)); }
  // Shortest text that reads back to the same value. JSON has no NaN or infinity: null is written.
  JsonWriter& number(double value);
  JsonWriter& number(float value);
  JsonWriter& boolean(bool value);
  JsonWriter& null();
  JsonWriter& raw(std::string_view json);  // `json` is a complete value already

  template <class T>
  JsonWriter& field(std::string_view name, const T& value) {
    key(name);
    if constexpr (std::is_same_v<T, bool>) {
      return boolean(value);
    } else if constexpr (std::is_arithmetic_v<T>) {
      return number(value);
    } else {
      return string(value);
    }
  }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();
  JsonWriter& negative_zero();

  std::string& out_;
  bool need_comma_ = false;
};

// Whether `text` stands in a JSON string as it is.
[[nodiscard]] bool is_plain_json(std::string_view text);
// Appends `text` as a JSON string with its quotes.
void append_json_string(std::string& out, std::string_view text);

}  // namespace baton
