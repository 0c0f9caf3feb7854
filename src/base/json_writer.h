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
  // A name that stands in the code as it is to be written: nothing in it is escaped.
  template <size_t size>
  JsonWriter& key(const char (&name)[size]) {
    return plain_key({name, size - 1});
  }

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
    return key(name).value(value);
  }
  template <size_t size, class T>
  JsonWriter& field(const char (&name)[size], const T& value) {
    return key(name).value(value);
  }

 private:
  template <class T>
  JsonWriter& value(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      return boolean(value);
    } else if constexpr (std::is_arithmetic_v<T>) {
      return number(value);
    } else {
      return string(value);
    }
  }
  JsonWriter& plain_key(std::string_view name);
  JsonWriter& open(char bracket) {
    separate();
    out_.push_back(bracket);
    need_comma_ = false;
    return *this;
  }
  JsonWriter& close(char bracket) {
    out_.push_back(bracket);
    need_comma_ = true;
    return *this;
  }
  void separate() {
    if (need_comma_) out_.push_back(',');
    need_comma_ = true;
  }
  JsonWriter& negative_zero();

  std::string& out_;
  bool need_comma_ = false;
};

// Whether `text` stands in a JSON string as it is.
[[nodiscard]] bool is_plain_json(std::string_view text);
// Appends `text` as a JSON string with its quotes.
void append_json_string(std::string& out, std::string_view text);

}  // namespace baton
