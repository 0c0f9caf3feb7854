#pragma once
// Reads a JSON document in one pass by visiting its values in order.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "domain/data_type.h"

namespace baton::protocol::json {

struct JsonError {
  std::string message;  // what is wrong and where: safe to show to a client
};

struct JsonLimits {
  size_t depth = 100;
  size_t keys_per_object = 4096;
};

enum class JsonKind : uint8_t { kObject, kArray, kString, kNumber, kBoolean, kNull };

class JsonParser;

// A value while it is being visited: read it once, by one of its methods. Every reader returns
// false once the document has failed; the first failure is kept and returned by JsonParser::parse.
class JsonValue {
 public:
  [[nodiscard]] JsonKind kind();

  // Visits the fields or elements; the visitor returns false to fail (after calling fail()). A
  // value that the visitor does not read is walked and checked. A key appears once or the document
  // fails.
  bool each_field(FunctionRef<bool(std::string_view key, JsonValue& value)> visit);
  bool each_element(FunctionRef<bool(JsonValue& value)> visit);

  bool read_string(std::string& out);
  bool read_int64(int64_t& out);
  bool read_uint64(uint64_t& out);
  bool read_double(double& out);
  bool read_bool(bool& out);
  // Appends the elements of a scalar or of nested arrays, row-major, in the tensor encoding of
  // `type`. Integers must be integral and fit; numbers for FP16, BF16 and FP32 are rounded once to
  // nearest and must be finite then; BYTES are strings. Fails beyond the elements of `shape`, and
  // when arrays within arrays have other lengths than it says; one flat array fits every shape.
  bool append_elements(DataType type, std::span<const int64_t> shape, std::vector<std::byte>& out);
  bool skip();

  bool fail(std::string message);
  // Says where the failure happened: puts `place` before the message. Returns false.
  bool within(std::string_view place);

 private:
  friend class JsonParser;
  friend struct JsonVisitor;
  JsonValue(void* value, JsonParser& parser, size_t depth)
      : value_(value), parser_(parser), depth_(depth) {}
  void* value_;
  JsonParser& parser_;
  size_t depth_;
  bool read_ = false;
};

// Owns the buffers of parsing; one thread.
class JsonParser {
 public:
  explicit JsonParser(JsonLimits limits = {});
  ~JsonParser();
  JsonParser(const JsonParser&) = delete;
  JsonParser& operator=(const JsonParser&) = delete;

  // `padded_text` is followed by at least 64 readable bytes of any content. When the first of them
  // is not NUL, the text is copied: simdjson takes what stands there for a value that the text
  // lacks.
  Result<void, JsonError> parse(std::string_view padded_text,
                                FunctionRef<bool(JsonValue& root)> visit);
  // The same for text without padding, which is copied.
  Result<void, JsonError> parse_copy(std::string_view text,
                                     FunctionRef<bool(JsonValue& root)> visit);

 private:
  friend class JsonValue;
  friend struct JsonVisitor;
  struct Impl;
  Result<void, JsonError> parse_terminated(std::string_view text,
                                           FunctionRef<bool(JsonValue& root)> visit);
  JsonLimits limits_;
  std::unique_ptr<Impl> impl_;
  std::string error_;
};

}  // namespace baton::protocol::json
