#include <gtest/gtest.h>

#include <algorithm>

#include "protocol/compression/encoding.h"
#include "protocol/compression/expand.h"
#include "protocol/compression/zlib_stream.h"

namespace baton::protocol::compression {
namespace {

std::string text_of(size_t size) {
  std::string text;
  while (text.size() < size) text += "line " + std::to_string(text.size() * 7919 % 1000) + "\n";
  text.resize(size);
  return text;
}

std::string packed(Encoding encoding, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  const std::array pieces = {bytes.first(bytes.size() / 3), bytes.subspan(bytes.size() / 3)};
  return compress(encoding, pieces).value_or("");
}

// "" when it is broken or does not end; in pieces of these sizes.
std::string expanded(Encoding encoding, std::string_view body, size_t in = 1 << 20,
                     size_t room = 1 << 20) {
  Inflater inflater(encoding);
  std::string out;
  std::string buffer(room, '\0');
  while (true) {
    const auto step = inflater.step(body.substr(0, in), buffer);
    if (!step) return "";
    out.append(buffer, 0, step->made);
    body.remove_prefix(step->taken);
    if (body.empty() && step->made < room) break;
  }
  return inflater.complete() ? out : "";
}

TEST(Compression, ExpandsWhatItCompressedHoweverItIsCut) {
  for (Encoding encoding : {Encoding::kGzip, Encoding::kDeflate}) {
    const std::string text = text_of(100'000);
    const std::string body = packed(encoding, text);
    ASSERT_FALSE(body.empty());
    EXPECT_LT(body.size(), text.size() / 2);
    EXPECT_EQ(expanded(encoding, body), text);
    EXPECT_EQ(expanded(encoding, body, 1, 7), text);
    EXPECT_EQ(expanded(encoding, body, 1000, 1), text);
  }
}

TEST(Compression, WhatDoesNotShrinkIsLeftAsItIs) {
  const std::string text = text_of(20'000);
  const std::string body = packed(Encoding::kGzip, text);
  EXPECT_EQ(packed(Encoding::kGzip, body), "");
  EXPECT_EQ(packed(Encoding::kGzip, "short"), "");
  EXPECT_EQ(packed(Encoding::kDeflate, ""), "");
}

TEST(Compression, GzipMayHaveSeveralMembers) {
  const std::string one = packed(Encoding::kGzip, text_of(1000));
  EXPECT_EQ(expanded(Encoding::kGzip, one + one), text_of(1000) + text_of(1000));
  const std::string two = packed(Encoding::kDeflate, text_of(1000));
  EXPECT_EQ(expanded(Encoding::kDeflate, two + two), "");
}

TEST(Compression, BrokenStreamsAreRefused) {
  const std::string body = packed(Encoding::kGzip, text_of(1000));
  EXPECT_EQ(expanded(Encoding::kGzip, body.substr(0, body.size() - 1)), "") << "cut";
  EXPECT_EQ(expanded(Encoding::kGzip, body + "x"), "") << "something behind it";
  std::string wrong = body;
  wrong[wrong.size() - 6] ^= 1;
  EXPECT_EQ(expanded(Encoding::kGzip, wrong), "") << "its checksum";
  EXPECT_EQ(expanded(Encoding::kDeflate, body), "") << "the other format";
  EXPECT_EQ(expanded(Encoding::kGzip, ""), "");
  EXPECT_EQ(expanded(Encoding::kGzip, "{}"), "");
}

TEST(Compression, MakesNoMoreThanItsRoom) {
  const std::string body = packed(Encoding::kGzip, std::string(10 << 20, '\0'));
  Inflater inflater(Encoding::kGzip);
  std::array<char, 1000> room{};
  const auto step = inflater.step(body, room);
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->made, room.size());
  EXPECT_FALSE(inflater.complete());
}

TEST(Expand, MakesTheTextUpToItsLimit) {
  for (size_t size : {size_t{0}, size_t{1}, size_t{1000}, size_t{100'000}, size_t{3'000'000}}) {
    const std::string text(size, 'a');
    std::string body = packed(Encoding::kGzip, text);
    if (body.empty()) continue;
    EXPECT_EQ(expand_text(Encoding::kGzip, body, size).value(), text) << size;
    EXPECT_EQ(expand_text(Encoding::kGzip, body, size + 1).value(), text) << size;
    EXPECT_EQ(expand_text(Encoding::kGzip, body, size - 1).error(), ExpandError::kTooLarge);
    EXPECT_EQ(expanded_size(Encoding::kGzip, body, size).value(), size);
    EXPECT_EQ(expanded_size(Encoding::kGzip, body, size - 1).error(), ExpandError::kTooLarge);
    body.pop_back();
    EXPECT_EQ(expand_text(Encoding::kGzip, body, size).error(), ExpandError::kCut);
    EXPECT_EQ(expand_text(Encoding::kDeflate, body, size).error(), ExpandError::kBroken);
  }
}

TEST(Encoding, ReadsContentEncoding) {
  EXPECT_EQ(parse_content_encoding("gzip"), Encoding::kGzip);
  EXPECT_EQ(parse_content_encoding(" GZip "), Encoding::kGzip);
  EXPECT_EQ(parse_content_encoding("x-gzip"), Encoding::kGzip);
  EXPECT_EQ(parse_content_encoding("deflate"), Encoding::kDeflate);
  EXPECT_EQ(parse_content_encoding("identity"), Encoding::kIdentity);
  for (const char* other : {"", "br", "gzip, deflate", "gzip,", "zstd", "gzip;q=1"}) {
    EXPECT_EQ(parse_content_encoding(other), std::nullopt) << other;
  }
}

TEST(Encoding, ChoosesByWeight) {
  const auto chosen = [](std::string_view accept) { return choose_encoding(accept); };
  EXPECT_EQ(chosen(""), Encoding::kIdentity);
  EXPECT_EQ(chosen("br, zstd"), Encoding::kIdentity);
  EXPECT_EQ(chosen("gzip, deflate"), Encoding::kGzip);
  EXPECT_EQ(chosen("deflate"), Encoding::kDeflate);
  EXPECT_EQ(chosen("gzip;q=0.5, deflate;q=0.8"), Encoding::kDeflate);
  EXPECT_EQ(chosen("gzip;q=0"), Encoding::kIdentity);
  EXPECT_EQ(chosen("gzip;q=0.5, identity"), Encoding::kIdentity);
  EXPECT_EQ(chosen("gzip;q=0.5, identity;q=0.25"), Encoding::kGzip);
  EXPECT_EQ(chosen("*"), Encoding::kGzip);
  EXPECT_EQ(chosen("*;q=0.1, gzip;q=0"), Encoding::kDeflate);
  EXPECT_EQ(chosen("identity;q=0, *;q=0"), Encoding::kIdentity) << "rather than no answer";
  EXPECT_EQ(chosen(" GZIP ; Q=0.001 ,,"), Encoding::kGzip);
  for (const char* wrong : {"gzip;q=2", "gzip;q=1.001", "gzip;q=-1", "gzip;q=x", "gzip;x=1",
                            "gzip;q=", "gzip;q=0.0001"}) {
    EXPECT_EQ(chosen(wrong), Encoding::kIdentity) << wrong;
  }
}

}  // namespace
}  // namespace baton::protocol::compression
