#include "protocol/json/reader.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace baton::protocol::json {
namespace {

// Walks everything; returns the error or "".
std::string walk(std::string_view text, JsonLimits limits = {}) {
  JsonParser parser(limits);
  const auto result = parser.parse_copy(text, [](JsonValue&) { return true; });
  return result.has_value() ? "" : result.error().message;
}

template <class T>
std::vector<T> elements(std::string_view text, DataType type, std::string* error = nullptr,
                        const std::vector<int64_t>& shape = {100}) {
  JsonParser parser;
  std::vector<std::byte> out;
  const auto result = parser.parse_copy(
      text, [&](JsonValue& root) { return root.append_elements(type, shape, out); });
  if (!result.has_value() && error != nullptr) *error = result.error().message;
  std::vector<T> values(out.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), out.data(), values.size() * sizeof(T));
  return values;
}

TEST(JsonReader, AcceptsWhatIsWellFormed) {
  EXPECT_EQ(walk(R"({"a":[1,2,{"b":null}],"c":"\u00e9","d":-1.5e3,"e":true})"), "");
  EXPECT_EQ(walk("[]"), "");
}

TEST(JsonReader, WalksTheWholeDocumentWhateverTheVisitorReads) {
  for (const char* bad :
       {R"({"a":1}x)", R"({"a":1}{})", R"({"a":[1,2})", R"({"a":1)", R"({"a":tru})", R"({"a":01})",
        R"({"a":nul})", R"({"a":1,})", R"([1,])", R"({"a" 1})", R"({"a":"\x"})", "", "{", "]",
        R"({"a":{"b":[1,2,}})", R"({"a":1e})", R"({"a":-})", "{\"a\":\"\x01\"}"}) {
    EXPECT_NE(walk(bad), "") << bad;
  }
}

TEST(JsonReader, WhatStandsBehindTheTextIsNotReadAsAValue) {
  for (const std::string text : {R"({"a":)", R"([)", R"([1,)", R"({"a":1)", R"([1)"}) {
    for (const char behind : {'"', '1', ']', '}', '{', 't'}) {
      const std::string buffer = text + std::string(64, behind);
      JsonParser parser;
      const auto result = parser.parse(std::string_view(buffer).substr(0, text.size()),
                                       [](JsonValue&) { return true; });
      EXPECT_FALSE(result.has_value()) << text << behind;
    }
  }
}

TEST(JsonReader, RefusesDuplicateKeysAtEveryDepth) {
  EXPECT_EQ(walk(R"({"a":1,"a":2})"), "the key \"a\" appears twice");
  EXPECT_EQ(walk(R"({"x":{"a":1,"\u0061":2}})"), "the key \"a\" appears twice");
  std::string many = "{";
  for (int i = 0; i < 50; ++i) many += "\"k" + std::to_string(i) + "\":1,";
  EXPECT_EQ(walk(many + R"("k40":2})"), "the key \"k40\" appears twice");
}

TEST(JsonReader, BoundsDepthAndKeys) {  // server#8770: depth bombs
  std::string deep(200'000, '[');
  EXPECT_NE(walk(deep), "");
  std::string nested(101, '[');
  nested += std::string(101, ']');
  EXPECT_NE(walk(nested), "");
  std::string fine(100, '[');
  fine += std::string(100, ']');
  EXPECT_EQ(walk(fine), "");
  EXPECT_EQ(walk(R"({"a":1,"b":2,"c":3})", {.keys_per_object = 2}),
            "a JSON object has too many keys");
}

TEST(JsonReader, IntegersAreExactToSixtyFourBits) {  // U147
  EXPECT_EQ(elements<int64_t>("[9007199254740993,-9223372036854775808]", DataType::kInt64),
            (std::vector<int64_t>{9007199254740993, std::numeric_limits<int64_t>::min()}));
  EXPECT_EQ(elements<uint64_t>("[18446744073709551615]", DataType::kUint64),
            (std::vector<uint64_t>{std::numeric_limits<uint64_t>::max()}));
}

TEST(JsonReader, IntegersThatDoNotFitAreRefused) {
  for (const auto& [text, type] :
       std::vector<std::pair<const char*, DataType>>{{"[2147483648]", DataType::kInt32},
                                                     {"[-1]", DataType::kUint8},
                                                     {"[256]", DataType::kUint8},
                                                     {"[-1]", DataType::kUint64},
                                                     {"[1.0]", DataType::kInt32},
                                                     {"[\"1\"]", DataType::kInt32},
                                                     {"[1]", DataType::kBool},
                                                     {"[18446744073709551616]", DataType::kUint64},
                                                     {"[1e39]", DataType::kFp32},
                                                     {"[null]", DataType::kFp32}}) {
    std::string error;
    elements<uint8_t>(text, type, &error);
    EXPECT_NE(error, "") << text;
  }
}

TEST(JsonReader, NestedAndFlatDataAreTheSame) {
  EXPECT_EQ(elements<float>("[[1,2],[3,4.5]]", DataType::kFp32, nullptr, {2, 2}),
            elements<float>("[1,2,3,4.5]", DataType::kFp32));
}

TEST(JsonReader, NestedDataHasTheShapeOrIsRefused) {
  const auto error = [](std::string_view text, const std::vector<int64_t>& shape) {
    std::string message;
    elements<float>(text, DataType::kFp32, &message, shape);
    return message;
  };
  EXPECT_EQ(error("[[1,2,3],[4,5,6]]", {2, 3}), "");
  EXPECT_EQ(error("[[[1],[2]],[[3],[4]]]", {2, 2, 1}), "");
  EXPECT_EQ(error("[[],[]]", {2, 0}), "");
  EXPECT_EQ(error("[1,2,3,4,5,6]", {2, 3}), "");
  EXPECT_EQ(error("[5]", {}), "");
  for (const char* ragged : {"[[1,2],[3,4,5,6]]", "[[1,2,3],[4,5]]", "[[1,2],[3,4],[5,6]]",
                             "[[1,2,3],4,5,6]", "[1,[2,3],4,5,6]", "[[[1,2,3]],[[4,5,6]]]",
                             "[[1,2,3,4,5,6]]", "[[1,2,3],[4,5,[6]]]", "[[],[1,2,3,4,5,6]]"}) {
    EXPECT_NE(error(ragged, {2, 3}), "") << ragged;
  }
  EXPECT_NE(error("[[1,2]]", {2}), "");
  EXPECT_NE(error("[[1,2],[3,4]]", {2, 2, 1}), "");
}

TEST(JsonReader, HalfFloatsAreRoundedOnce) {  // server#5960, kserve#3643
  EXPECT_EQ(elements<uint16_t>("[1,0.1,65504]", DataType::kFp16),
            (std::vector<uint16_t>{0x3c00, 0x2e66, 0x7bff}));
  EXPECT_EQ(elements<uint16_t>("[1,0.1]", DataType::kBf16),
            (std::vector<uint16_t>{0x3f80, 0x3dcd}));
}

TEST(JsonReader, NumbersThatBecomeInfiniteAreRefused) {
  for (const auto& [text, type] :
       std::vector<std::pair<const char*, DataType>>{{"[65520]", DataType::kFp16},
                                                     {"[-1e6]", DataType::kFp16},
                                                     {"[3.4e38,1e39]", DataType::kBf16},
                                                     {"[1e39]", DataType::kFp32}}) {
    std::string error;
    elements<uint16_t>(text, type, &error);
    EXPECT_EQ(error, "a number does not fit " + std::string(data_type_name(type))) << text;
  }
  EXPECT_EQ(elements<uint16_t>("[65519]", DataType::kFp16), (std::vector<uint16_t>{0x7bff}));
}

TEST(JsonReader, MoreElementsThanAllowedAreRefused) {
  JsonParser parser;
  std::vector<std::byte> out;
  const auto result = parser.parse_copy("[1,2,3]", [&](JsonValue& root) {
    return root.append_elements(DataType::kInt8, std::array<int64_t, 1>{2}, out);
  });
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "has more elements than its shape");
}

}  // namespace
}  // namespace baton::protocol::json
