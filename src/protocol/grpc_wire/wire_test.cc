#include <gtest/gtest.h>

#include "protocol/grpc_wire/frame_filter.h"
#include "protocol/grpc_wire/message_reader.h"
#include "protocol/grpc_wire/metadata.h"
#include "protocol/grpc_wire/output_queue.h"

namespace baton::protocol::grpc_wire {
namespace {

TEST(Metadata, FindsTheFirstOfAName) {
  Metadata metadata;
  metadata.add("a", "1");
  metadata.add("b", "");
  metadata.add("a", "2");
  EXPECT_EQ(metadata.find("a"), "1");
  EXPECT_EQ(metadata.find("b"), "");
  EXPECT_EQ(metadata.find("c"), std::nullopt);
  EXPECT_EQ(metadata.count("a"), 2U);
  EXPECT_EQ(metadata.count(""), 0U);
}

TEST(Timeout, IsDigitsAndAUnit) {
  EXPECT_EQ(parse_timeout("1S").value(), Duration::s(1));
  EXPECT_EQ(parse_timeout("2M").value(), Duration::s(120));
  EXPECT_EQ(parse_timeout("1H").value(), Duration::s(3600));
  EXPECT_EQ(parse_timeout("250m").value(), Duration::ms(250));
  EXPECT_EQ(parse_timeout("99999999u").value(), Duration::us(99'999'999));
  EXPECT_EQ(parse_timeout("0n").value(), Duration());
  EXPECT_EQ(parse_timeout("99999999H").value(), Duration::s(10LL * 365 * 24 * 3600));
  for (const char* wrong : {"", "S", "1", "1s", "-1S", "+1S", "100000000S", "1.5S", "1 S", "S1"}) {
    EXPECT_FALSE(parse_timeout(wrong).has_value()) << wrong;
  }
}

TEST(Message, IsEncodedOutsidePrintableAscii) {
  EXPECT_EQ(encode_message("plain ~"), "plain ~");
  EXPECT_EQ(encode_message("100%\n\xc3\xa9"), "100%25%0A%C3%A9");
}

// The messages in `bytes`, given to the reader in pieces of `piece`.
std::vector<std::string> read(MessageReader& reader, const std::string& bytes, size_t piece,
                              MessageReader::Step& last) {
  std::vector<std::string> messages;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    std::span<const char> left = std::span(bytes).subspan(at, std::min(piece, bytes.size() - at));
    do {
      last = reader.read(left);
      if (last == MessageReader::Step::kMessage) messages.push_back(reader.take());
      if (last > MessageReader::Step::kMessage) return messages;
    } while (!left.empty());
  }
  return messages;
}

std::string framed(const std::string& message) {
  const auto prefix = message_prefix(static_cast<uint32_t>(message.size()));
  return std::string(prefix.data(), prefix.size()) + message;
}

TEST(MessageReader, TakesMessagesOutOfPiecesOfAnySize) {
  const std::string bytes = framed("first") + framed("") + framed(std::string(70'000, 'x'));
  for (size_t piece : {1UL, 2UL, 5UL, 6UL, 4096UL, bytes.size()}) {
    MessageReader reader;
    reader.set_limit(70'000);
    MessageReader::Step last{};
    const auto messages = read(reader, bytes, piece, last);
    ASSERT_EQ(messages.size(), 3U) << piece;
    EXPECT_EQ(messages[0], "first");
    EXPECT_EQ(messages[1], "");
    EXPECT_EQ(messages[2].size(), 70'000U);
    EXPECT_EQ(reader.partial(), 0U);
  }
}

TEST(MessageReader, StopsAtWhatItDoesNotTake) {
  MessageReader::Step last{};
  MessageReader small;
  small.set_limit(4);
  EXPECT_TRUE(read(small, framed("12345"), 100, last).empty());
  EXPECT_EQ(last, MessageReader::Step::kTooLarge);
  EXPECT_EQ(small.announced(), 5U);
  MessageReader compressed;
  compressed.set_limit(4);
  read(compressed, std::string("\1\0\0\0\1a", 6), 100, last);
  EXPECT_EQ(last, MessageReader::Step::kCompressed);
  MessageReader allowed;
  allowed.set_limit(4);
  allowed.allow_compressed();
  EXPECT_EQ(read(allowed, std::string("\1\0\0\0\1a", 6), 100, last).size(), 1U);
  EXPECT_TRUE(allowed.compressed());
  EXPECT_EQ(read(allowed, std::string("\0\0\0\0\1a", 6), 100, last).size(), 1U);
  EXPECT_FALSE(allowed.compressed());
  MessageReader malformed;
  read(malformed, std::string("\2\0\0\0\1a", 6), 100, last);
  EXPECT_EQ(last, MessageReader::Step::kMalformed);
}

std::string frame(int type, uint32_t stream, size_t size) {
  std::string bytes(9 + size, static_cast<char>('a' + type));
  bytes[0] = static_cast<char>(size >> 16);
  bytes[1] = static_cast<char>(size >> 8);
  bytes[2] = static_cast<char>(size);
  bytes[3] = static_cast<char>(type);
  bytes[4] = 0;
  for (int i = 0; i < 4; ++i)
    bytes[5 + static_cast<size_t>(i)] = static_cast<char>(stream >> (24 - 8 * i));
  return bytes;
}

TEST(FrameFilter, DropsResetsOfCallsThatWereNeverBegunHoweverTheBytesAreCut) {
  constexpr int kData = 0;
  constexpr int kHeaders = 1;
  constexpr int kReset = 3;
  const std::string preface(24, 'p');
  const std::string bytes = preface + frame(kReset, 1, 4) + frame(4, 0, 0) +
                            frame(kHeaders, 3, 20) + frame(kReset, 3, 4) + frame(kReset, 5, 4) +
                            frame(kReset, 7, 4) + frame(kData, 3, 70'000) + frame(kHeaders, 7, 1) +
                            frame(kReset, 5, 4) + frame(kReset, 9, 4);
  const std::string wanted = preface + frame(4, 0, 0) + frame(kHeaders, 3, 20) +
                             frame(kReset, 3, 4) + frame(kData, 3, 70'000) + frame(kHeaders, 7, 1) +
                             frame(kReset, 5, 4);
  for (size_t piece : {1UL, 2UL, 7UL, 13UL, 100UL, 4096UL, bytes.size()}) {
    FrameFilter filter;
    std::string passed;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      const auto part =
          std::span<const char>(bytes).subspan(at, std::min(piece, bytes.size() - at));
      ASSERT_TRUE(filter.feed(part, [&](std::span<const char> left) {
        passed.append(left.data(), left.size());
        return true;
      }));
    }
    EXPECT_TRUE(passed == wanted) << piece;
  }
}

std::string text_of(const OutputQueue& queue) {
  std::vector<std::span<const char>> pieces;
  queue.front(1000, pieces);
  std::string text;
  for (const auto& piece : pieces) text.append(piece.data(), piece.size());
  return text;
}

TEST(OutputQueue, KeepsOrderAndLetsGoOfWhatIsWritten) {
  auto keep = std::make_shared<std::string>("0123456789");
  OutputQueue queue;
  queue.copy(std::string_view("ab"));
  queue.refer(*keep, keep);
  queue.copy(std::string_view("cd"));
  queue.copy(std::string_view("ef"));
  EXPECT_EQ(queue.size(), 16U);
  EXPECT_EQ(text_of(queue), "ab0123456789cdef");
  queue.consume(5);
  EXPECT_EQ(text_of(queue), "3456789cdef");
  OutputQueue other;
  queue.move_to(other, 3);
  EXPECT_EQ(text_of(other), "345");
  EXPECT_EQ(keep.use_count(), 3);
  queue.consume(5);
  EXPECT_EQ(text_of(queue), "def");
  other.consume(3);
  EXPECT_EQ(keep.use_count(), 1);
  EXPECT_TRUE(other.empty());
}

}  // namespace
}  // namespace baton::protocol::grpc_wire
