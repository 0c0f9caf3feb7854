#include "protocol/oip/repository_codec.h"

#include <gtest/gtest.h>

namespace baton::protocol::oip {
namespace {

template <class Decode>
auto decoded(Decode decode, std::string text) {
  json::JsonParser parser;
  const size_t size = text.size();
  text.append(64, '\0');
  return decode(std::string_view(text).substr(0, size), parser);
}

TEST(RepositoryCodec, ReadsBase64AsItIsWrittenDown) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("Zg=="), "f");
  EXPECT_EQ(decode_base64("Zm8="), "fo");
  EXPECT_EQ(decode_base64("Zm9v"), "foo");
  EXPECT_EQ(decode_base64("Zm9vYg=="), "foob");
  EXPECT_EQ(decode_base64("AP+/"), std::string("\0\xff\xbf", 3));
  for (const char* wrong : {"=", "Z", "Zg", "Zg=", "Zg===", "Z=g=", "=Zg=", "Zh==", "Zm9=",
                            "Zm9v\n", "Zm9v====", "Zm-_", "====", "\x80\x80\x80\x80"}) {
    EXPECT_EQ(decode_base64(wrong), std::nullopt) << wrong;
  }
}

TEST(RepositoryCodec, ALoadHasAConfigurationFilesAndAVersion) {
  const auto load = decoded(decode_load_request,
                            R"({"parameters": {"config": "{}", "file:1/model.onnx": "Zm9v",
                                "version": "3"}, "other": 1})");
  ASSERT_TRUE(load.has_value()) << load.error().message;
  EXPECT_EQ(load->config, "{}");
  EXPECT_EQ(load->files.at("1/model.onnx"), "foo");
  EXPECT_EQ(load->version, 3);
  EXPECT_EQ(decoded(decode_load_request, R"({"parameters": {"version": 3}})")->version, 3);
  EXPECT_TRUE(decoded(decode_load_request, " \n").has_value());
  EXPECT_TRUE(decoded(decode_load_request, "{}").has_value());
}

TEST(RepositoryCodec, AWrongLoadIsInvalidAndSaysWhy) {
  const auto why = [](const std::string& text) {
    const auto load = decoded(decode_load_request, text);
    if (load.has_value()) return std::string();
    EXPECT_EQ(load.error().reason, EndReason::kInvalid);
    return load.error().message;
  };
  EXPECT_NE(why("{"), "");
  EXPECT_NE(why("[]"), "");
  EXPECT_NE(why(R"({"parameters": []})"), "");
  EXPECT_NE(why(R"({"parameters": {"config": 1}})"), "");
  EXPECT_NE(why(R"({"parameters": {"color": "1"}})").find("color"), std::string::npos);
  EXPECT_NE(why(R"({"parameters": {"version": "0"}})").find("positive"), std::string::npos);
  EXPECT_NE(why(R"({"parameters": {"version": 1.5}})"), "");
  EXPECT_NE(why(R"({"parameters": {"file:1/m": "Zm9v"}})").find("config"), std::string::npos);
  EXPECT_NE(why(R"({"parameters": {"config": "", "file:1/m": "Zm9"}})").find("base64"),
            std::string::npos);
  for (const char* name : {"m", "1", "1/", "/1/m", "../1/m", "1/../m", "1/./m", "1//m", "01/m",
                           "0/m", "-1/m", "a/m", "", "1/.."}) {
    EXPECT_NE(why(std::string(R"({"parameters": {"config": "", "file:)") + name + R"(": "Zm9v"}})")
                  .find("<version>/<file>"),
              std::string::npos)
        << name;
  }
  EXPECT_EQ(why(R"({"parameters": {"config": "", "file:1/a/b..c": "Zm9v"}})"), "");
}

TEST(RepositoryCodec, AnUnloadMayNameAVersion) {
  const auto unload = decoded(decode_unload_request,
                              R"({"parameters": {"unload_dependents": true, "version": 2}})");
  ASSERT_TRUE(unload.has_value());
  EXPECT_TRUE(unload->dependents);
  EXPECT_EQ(unload->version, 2);
  EXPECT_FALSE(decoded(decode_unload_request, R"({"parameters": {"config": "{}"}})").has_value());
  EXPECT_TRUE(decoded(decode_unload_request, "").has_value());
}

TEST(RepositoryCodec, AnIndexMayBeOfWhatIsReady) {
  EXPECT_FALSE(decoded(decode_index_request, "")->ready);
  EXPECT_TRUE(decoded(decode_index_request, R"({"ready": true})")->ready);
  EXPECT_FALSE(decoded(decode_index_request, R"({"ready": 1})").has_value());
}

}  // namespace
}  // namespace baton::protocol::oip
