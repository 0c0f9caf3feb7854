#include "protocol/json/reader.h"

#include <simdjson.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "base/half.h"
#include "domain/tensor.h"

namespace baton::protocol::json {

namespace ondemand = simdjson::ondemand;

struct JsonParser::Impl {
  ondemand::parser parser;
};

namespace {

// Documents above this size leave no buffers behind.
constexpr size_t kKeepBuffersUpTo = 1 << 20;
// Up to here a linear search finds duplicates faster than a tree.
constexpr size_t kLinearKeys = 16;

std::string describe(simdjson::error_code error) {
  switch (error) {
    case simdjson::UTF8_ERROR:
      return "the JSON is not valid UTF-8";
    case simdjson::EMPTY:
      return "the JSON is empty";
    case simdjson::UNCLOSED_STRING:
      return "a JSON string is not closed";
    case simdjson::UNESCAPED_CHARS:
      return "a JSON string holds an unescaped control character";
    case simdjson::INCOMPLETE_ARRAY_OR_OBJECT:
      return "the JSON ends inside an array or object";
    case simdjson::DEPTH_ERROR:
      return "the JSON is nested too deep";
    case simdjson::NUMBER_ERROR:
      return "the JSON holds a malformed number";
    case simdjson::NUMBER_OUT_OF_RANGE:
      return "a JSON number is out of range";
    case simdjson::STRING_ERROR:
      return "the JSON holds a malformed string";
    case simdjson::TRAILING_CONTENT:
      return "the JSON is followed by something else";
    default:
      return "the JSON is malformed";
  }
}

// Finds duplicate keys of one object.
class KeySet {
 public:
  bool insert(std::string_view key) {
    if (size_ < kLinearKeys) {
      for (size_t i = 0; i < size_; ++i) {
        if (few_[i] == key) return false;
      }
      few_[size_++] = key;
      return true;
    }
    if (many_.empty()) many_.insert(few_.begin(), few_.end());
    if (!many_.insert(key).second) return false;
    ++size_;
    return true;
  }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  size_t size_ = 0;
  std::array<std::string_view, kLinearKeys> few_;  // the first size_ of them
  std::set<std::string_view> many_;
};

template <class T>
void append_value(std::vector<std::byte>& out, T value) {
  const size_t at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

}  // namespace

// Gives the free functions below access to a value's insides.
struct JsonVisitor {
  static ondemand::value& raw(JsonValue& value) {
    return *static_cast<ondemand::value*>(value.value_);
  }
  static bool fail(JsonValue& value, simdjson::error_code error) {
    return value.fail(describe(error));
  }
  static JsonValue child(JsonValue& parent, ondemand::value& raw) {
    return {&raw, parent.parser_, parent.depth_ + 1};
  }
  static size_t depth(const JsonValue& value) { return value.depth_; }
  static const JsonLimits& limits(const JsonValue& value) { return value.parser_.limits_; }
  static bool failed(const JsonValue& value) { return !value.parser_.error_.empty(); }
  static bool was_read(const JsonValue& value) { return value.read_; }

  template <class T>
  static bool read(JsonValue& value, T& out, const char* wanted) {
    value.read_ = true;
    const auto error = raw(value).get(out);
    if (error == simdjson::SUCCESS) return true;
    if (error == simdjson::INCORRECT_TYPE) return value.fail(std::string("expected ") + wanted);
    if (error == simdjson::NUMBER_ERROR) return value.fail(std::string("expected ") + wanted);
    return fail(value, error);
  }
};

JsonKind JsonValue::kind() {
  ondemand::json_type type{};
  if (JsonVisitor::raw(*this).type().get(type) != simdjson::SUCCESS) {
    fail("the JSON is malformed");
    return JsonKind::kNull;
  }
  switch (type) {
    case ondemand::json_type::object:
      return JsonKind::kObject;
    case ondemand::json_type::array:
      return JsonKind::kArray;
    case ondemand::json_type::string:
      return JsonKind::kString;
    case ondemand::json_type::number:
      return JsonKind::kNumber;
    case ondemand::json_type::boolean:
      return JsonKind::kBoolean;
    case ondemand::json_type::null:
      return JsonKind::kNull;
  }
  return JsonKind::kNull;
}

bool JsonValue::fail(std::string message) {
  // A client's text may stand in it: what is told stays short.
  constexpr size_t kMostMessage = 400;
  if (message.size() > kMostMessage) message = message.substr(0, kMostMessage) + "…";
  if (parser_.error_.empty()) parser_.error_ = std::move(message);
  return false;
}

bool JsonValue::within(std::string_view place) {
  parser_.error_ = std::string(place) + ": " + parser_.error_;
  return false;
}

bool JsonValue::each_field(FunctionRef<bool(std::string_view, JsonValue&)> visit) {
  read_ = true;
  if (depth_ > parser_.limits_.depth) return fail("the JSON is nested too deep");
  ondemand::object object;
  if (const auto error = JsonVisitor::raw(*this).get_object().get(object)) {
    return error == simdjson::INCORRECT_TYPE ? fail("expected an object")
                                             : JsonVisitor::fail(*this, error);
  }
  KeySet keys;
  for (auto field_result : object) {
    ondemand::field field;
    if (const auto error = std::move(field_result).get(field)) {
      return JsonVisitor::fail(*this, error);
    }
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return JsonVisitor::fail(*this, error);
    if (!keys.insert(key)) return fail("the key \"" + std::string(key) + "\" appears twice");
    if (keys.size() > parser_.limits_.keys_per_object)
      return fail("a JSON object has too many keys");
    ondemand::value raw = field.value();
    JsonValue value = JsonVisitor::child(*this, raw);
    if (!visit(key, value) || JsonVisitor::failed(*this)) {
      return fail("\"" + std::string(key) + "\" was not accepted");
    }
    if (!value.read_ && !value.skip()) return false;
  }
  return true;
}

bool JsonValue::each_element(FunctionRef<bool(JsonValue&)> visit) {
  read_ = true;
  if (depth_ > parser_.limits_.depth) return fail("the JSON is nested too deep");
  ondemand::array array;
  if (const auto error = JsonVisitor::raw(*this).get_array().get(array)) {
    return error == simdjson::INCORRECT_TYPE ? fail("expected an array")
                                             : JsonVisitor::fail(*this, error);
  }
  for (auto element_result : array) {
    ondemand::value raw;
    if (const auto error = std::move(element_result).get(raw)) {
      return JsonVisitor::fail(*this, error);
    }
    JsonValue value = JsonVisitor::child(*this, raw);
    if (!visit(value) || JsonVisitor::failed(*this)) return fail("an element was not accepted");
    if (!value.read_ && !value.skip()) return false;
  }
  return true;
}

bool JsonValue::read_string(std::string& out) {
  std::string_view text;
  if (!JsonVisitor::read(*this, text, "a string")) return false;
  out.assign(text);
  return true;
}

bool JsonValue::read_int64(int64_t& out) {
  return JsonVisitor::read(*this, out, "an integer");
}
bool JsonValue::read_uint64(uint64_t& out) {
  return JsonVisitor::read(*this, out, "a non-negative integer");
}
bool JsonValue::read_double(double& out) {
  return JsonVisitor::read(*this, out, "a number");
}
bool JsonValue::read_bool(bool& out) {
  return JsonVisitor::read(*this, out, "true or false");
}

bool JsonValue::skip() {
  read_ = true;
  switch (kind()) {
    case JsonKind::kObject:
      return each_field([](std::string_view, JsonValue&) { return true; });
    case JsonKind::kArray:
      return each_element([](JsonValue&) { return true; });
    case JsonKind::kString: {
      std::string_view text;
      return JsonVisitor::read(*this, text, "a string");
    }
    case JsonKind::kNumber: {
      double number = 0;
      return JsonVisitor::read(*this, number, "a number");
    }
    case JsonKind::kBoolean: {
      bool flag = false;
      return JsonVisitor::read(*this, flag, "true or false");
    }
    case JsonKind::kNull:
      break;
  }
  if (JsonVisitor::failed(*this)) return false;
  bool is_null = false;
  if (const auto error = JsonVisitor::raw(*this).is_null().get(is_null)) {
    return JsonVisitor::fail(*this, error);
  }
  return is_null || fail("the JSON is malformed");
}

namespace {

// Appends the elements of a tensor, whose shape bounds their number.
class ElementReader {
 public:
  ElementReader(DataType type, std::span<const int64_t> shape, std::vector<std::byte>& out)
      : type_(type), shape_(shape), room_(element_count(shape).value_or(0)), out_(out) {}

  bool read(JsonValue& value) {
    if (is_array(value)) return read_array(value, 0);
    return read_element(value);
  }

 private:
  static bool is_array(JsonValue& value) {
    ondemand::json_type kind{};
    // What is malformed is told by whoever reads it next.
    return JsonVisitor::raw(value).type().get(kind) == simdjson::SUCCESS &&
           kind == ondemand::json_type::array;
  }

  // The array along dimension `level`.
  bool read_array(JsonValue& value, size_t level) {
    uint64_t arrays = 0;
    uint64_t scalars = 0;
    const bool ok = value.each_element([&](JsonValue& element) {
      if (!is_array(element)) {
        ++scalars;
        return read_element(element);
      }
      ++arrays;
      if (level + 1 >= shape_.size()) return element.fail("is nested deeper than its shape");
      return read_array(element, level + 1);
    });
    const bool flat = level == 0 && arrays == 0;
    if (!ok || flat) return ok;
    const bool fits = level + 1 == shape_.size() ? arrays == 0 : scalars == 0;
    const auto length = static_cast<uint64_t>(level < shape_.size() ? shape_[level] : 0);
    if (fits && arrays + scalars == length) return true;
    return value.fail("its nested arrays do not have its shape " + shape_text(shape_));
  }

  bool read_element(JsonValue& value) {
    if (room_ == 0) return value.fail("has more elements than its shape");
    --room_;
    return read_scalar(value);
  }

  template <class T, class Wide>
  bool read_integer(JsonValue& value) {
    Wide wide = 0;
    if (!JsonVisitor::read(value, wide, "an integer that fits the datatype")) return false;
    if (!std::in_range<T>(wide)) {
      return value.fail("a number does not fit " + std::string(data_type_name(type_)));
    }
    append_value(out_, static_cast<T>(wide));
    return true;
  }

  bool read_floating(JsonValue& value) {
    double number = 0;
    if (!JsonVisitor::read(value, number, "a number")) return false;
    switch (type_) {
      case DataType::kFp16:
        return append_half(value, double_to_fp16(number), 0x7c00);
      case DataType::kBf16:
        return append_half(value, double_to_bf16(number), 0x7f80);
      case DataType::kFp32:
        return read_float(value, number);
      default:
        append_value(out_, number);
        break;
    }
    return true;
  }

  // `infinity` without its sign.
  bool append_half(JsonValue& value, uint16_t bits, uint16_t infinity) {
    if ((bits & 0x7fff) == infinity) {
      return value.fail("a number does not fit " + std::string(data_type_name(type_)));
    }
    append_value(out_, bits);
    return true;
  }

  bool read_float(JsonValue& value, double number) {
    if (std::fabs(number) > static_cast<double>(std::numeric_limits<float>::max()) &&
        std::isinf(static_cast<float>(number))) {
      return value.fail("a number does not fit FP32");
    }
    append_value(out_, static_cast<float>(number));
    return true;
  }

  bool read_text(JsonValue& value) {
    std::string_view text;
    if (!JsonVisitor::read(value, text, "a string")) return false;
    append_value(out_, static_cast<uint32_t>(text.size()));
    const auto bytes = std::as_bytes(std::span(text));
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    return true;
  }

  bool read_scalar(JsonValue& value) {
    switch (type_) {
      case DataType::kBool: {
        bool flag = false;
        if (!JsonVisitor::read(value, flag, "true or false")) return false;
        append_value(out_, static_cast<uint8_t>(flag));
        return true;
      }
      case DataType::kUint8:
        return read_integer<uint8_t, int64_t>(value);
      case DataType::kUint16:
        return read_integer<uint16_t, int64_t>(value);
      case DataType::kUint32:
        return read_integer<uint32_t, int64_t>(value);
      case DataType::kUint64:
        return read_integer<uint64_t, uint64_t>(value);
      case DataType::kInt8:
        return read_integer<int8_t, int64_t>(value);
      case DataType::kInt16:
        return read_integer<int16_t, int64_t>(value);
      case DataType::kInt32:
        return read_integer<int32_t, int64_t>(value);
      case DataType::kInt64:
        return read_integer<int64_t, int64_t>(value);
      case DataType::kBytes:
        return read_text(value);
      default:
        return read_floating(value);
    }
  }

  DataType type_;
  std::span<const int64_t> shape_;
  uint64_t room_;
  std::vector<std::byte>& out_;
};

}  // namespace

bool JsonValue::append_elements(DataType type, std::span<const int64_t> shape,
                                std::vector<std::byte>& out) {
  ElementReader reader(type, shape, out);
  return reader.read(*this);
}

JsonParser::JsonParser(JsonLimits limits) : limits_(limits), impl_(std::make_unique<Impl>()) {}
JsonParser::~JsonParser() = default;

Result<void, JsonError> JsonParser::parse(std::string_view padded_text,
                                          FunctionRef<bool(JsonValue&)> visit) {
  const bool terminated = *(padded_text.data() + padded_text.size()) == '\0';
  return terminated ? parse_terminated(padded_text, visit) : parse_copy(padded_text, visit);
}

Result<void, JsonError> JsonParser::parse_terminated(std::string_view padded_text,
                                                     FunctionRef<bool(JsonValue&)> visit) {
  error_.clear();
  if (padded_text.size() > kKeepBuffersUpTo || impl_->parser.capacity() > kKeepBuffersUpTo) {
    impl_ = std::make_unique<Impl>();
  }
  ondemand::document document;
  const simdjson::padded_string_view view(padded_text,
                                          padded_text.size() + simdjson::SIMDJSON_PADDING);
  if (const auto error = impl_->parser.iterate(view).get(document)) {
    return fail(JsonError{describe(error)});
  }
  ondemand::value root;
  if (document.get_value().get(root) != simdjson::SUCCESS) {
    return fail(JsonError{"expected a JSON object or array"});
  }
  JsonValue value(&root, *this, 1);
  const bool accepted = visit(value) && (value.read_ || value.skip());
  if (accepted && error_.empty() &&
      document.current_location().error() != simdjson::OUT_OF_BOUNDS) {
    error_ = "the JSON is followed by something else";
  }
  if (!accepted && error_.empty()) error_ = "the JSON was not accepted";
  if (!error_.empty()) return fail(JsonError{error_});
  return {};
}

Result<void, JsonError> JsonParser::parse_copy(std::string_view text,
                                               FunctionRef<bool(JsonValue&)> visit) {
  std::string padded;
  padded.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  padded.assign(text);
  padded.append(simdjson::SIMDJSON_PADDING, '\0');
  return parse_terminated(std::string_view(padded).substr(0, text.size()), visit);
}

}  // namespace baton::protocol::json
