#include "protocol/oip/header_memo.h"

#include <gtest/gtest.h>

namespace baton::protocol::oip {
namespace {

// A body with its padding, kept alive by its storage.
struct Post {
  Post(const std::string& json, const std::string& binary)
      : text(std::make_shared<std::string>(json + binary)), length(std::to_string(json.size())) {
    size = text->size();
    text->append(64, '\0');
  }
  [[nodiscard]] RequestBody body() const {
    return {std::string_view(*text).substr(0, size), text, length};
  }
  std::shared_ptr<std::string> text;
  std::string length;
  size_t size = 0;
};

std::string header(std::string_view type, int bytes, std::string_view more = "") {
  return R"({"inputs":[{"name":"x","datatype":")" + std::string(type) +
         R"(","shape":[2],"parameters":{"binary_data_size":)" + std::to_string(bytes) + "}}]" +
         std::string(more) + "}";
}

std::string_view data_of(const DecodedRequest& decoded) {
  const auto data = decoded.request.inputs.at(0).data;
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

class HeaderMemoTest : public testing::Test {
 protected:
  Result<DecodedRequest, Refusal> decode(const Post& post) {
    return memo.decode(post.body(), parser);
  }
  json::JsonParser parser;
  HeaderMemo memo;
};

TEST_F(HeaderMemoTest, ARepeatedHeaderIsReadAsTheFirstTime) {
  const std::string json =
      header("INT32", 8, R"(,"id":"7","outputs":[{"name":"y"}],"parameters":{"timeout":9})");
  for (const char* data : {"aaaabbbb", "ccccdddd", "eeeeffff", "gggghhhh"}) {
    const Post post(json, data);
    const auto decoded = decode(post);
    ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
    EXPECT_EQ(data_of(*decoded), data);
    EXPECT_EQ(decoded->request.context.client_id, "7");
    EXPECT_EQ(decoded->request.outputs.at(0).name, "y");
    EXPECT_EQ(decoded->parameters.timeout_us, 9);
    EXPECT_EQ(decoded->request.context.bytes, post.size);
    ASSERT_EQ(decoded->request.storage.size(), 1);
    EXPECT_EQ(decoded->request.storage[0], post.text);
  }
}

TEST_F(HeaderMemoTest, AKnownHeaderWithOtherDataBehindItIsRefusedAsBefore) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(decode(Post(header("INT32", 8), "aaaabbbb")).has_value());
  for (const char* data : {"aaaabbb", "aaaabbbbc", "a"}) {
    const Post post(header("INT32", 8), data);
    const auto decoded = decode(post);
    ASSERT_FALSE(decoded.has_value()) << data;
    EXPECT_EQ(decoded.error().message, decode_infer_request(post.body(), parser).error().message);
  }
}

TEST_F(HeaderMemoTest, BytesElementsAreCheckedEveryTime) {
  const std::string good("\1\0\0\0a\1\0\0\0b", 10);
  const std::string bad("\1\0\0\0a\2\0\0\0b", 10);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(decode(Post(header("BYTES", 10), good)).has_value());
  EXPECT_FALSE(decode(Post(header("BYTES", 10), bad)).has_value());
  EXPECT_TRUE(decode(Post(header("BYTES", 10), good)).has_value());
}

TEST_F(HeaderMemoTest, DataWithinTheHeaderStaysItsOwn) {
  const std::string json =
      R"({"inputs":[{"name":"x","datatype":"INT32","shape":[1],"data":[5]},)"
      R"({"name":"z","datatype":"INT32","shape":[1],"parameters":{"binary_data_size":4}}]})";
  for (int i = 0; i < 4; ++i) {
    const Post post(json, "abcd");
    const auto decoded = decode(post);
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(decoded->request.storage.size(), 2);
    EXPECT_EQ(data_of(*decoded), std::string_view("\5\0\0\0", 4));
  }
}

TEST_F(HeaderMemoTest, ManyHeadersDisplaceEachOtherAndAreStillRead) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 500; ++i) {
      const std::string id = R"(,"id":")" + std::to_string(i) + "\"";
      const auto decoded = decode(Post(header("INT32", 8, id), "aaaabbbb"));
      ASSERT_TRUE(decoded.has_value());
      EXPECT_EQ(decoded->request.context.client_id, std::to_string(i));
    }
  }
}

}  // namespace
}  // namespace baton::protocol::oip
