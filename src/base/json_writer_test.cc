#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <limits>

namespace baton {
namespace {

TEST(JsonWriter, PlacesCommasAndNests) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("a", 1).key("b").begin_array().number(2).string("x").begin_object();
  json.end_object().end_array().field("c", true).end_object();
  EXPECT_EQ(out, R"({"a":1,"b":[2,"x",{}],"c":true})");
}

TEST(JsonWriter, EscapesAndReplacesInvalidUtf8) {
  std::string out;
  append_json_string(out, std::string_view("a\"\\\n\x01\0z\xff\xc3\xa9", 10));
  EXPECT_EQ(out, "\"a\\\"\\\\\\n\\u0001\\u0000z\xef\xbf\xbd\xc3\xa9\"");
}

TEST(JsonWriter, WritesTheShortestExactNumber) {
  std::string out;
  JsonWriter json(out);
  json.begin_array().number(0.1).number(0.1F).number(std::numeric_limits<int64_t>::min());
  json.number(std::numeric_limits<uint64_t>::max()).number(std::numeric_limits<double>::infinity());
  json.end_array();
  EXPECT_EQ(out, "[0.1,0.1,-9223372036854775808,18446744073709551615,null]");
}

TEST(JsonWriter, FindsWhatNeedsAnEscapeWhereverItStands) {
  for (int c = 0; c < 128; ++c) {
    for (size_t at = 0; at < 20; ++at) {
      std::string text(20, 'x');
      text[at] = static_cast<char>(c);
      std::string out;
      append_json_string(out, text);
      const bool plain = c >= 0x20 && c != '"' && c != '\\';
      EXPECT_EQ(out.size() == 22, plain) << c << " at " << at;
    }
  }
}

TEST(JsonWriter, StringsOfEveryLengthStandBehindEachOther) {
  std::string out;
  std::string expected;
  for (size_t length = 0; length < 100; ++length) {
    const std::string text(length, 'x');
    append_json_string(out, text);
    expected += "\"" + text + "\"";
    ASSERT_EQ(out, expected);
  }
}

}  // namespace
}  // namespace baton
