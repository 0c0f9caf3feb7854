#include "protocol/oip/client.h"

#include <gtest/gtest.h>

#include <array>

#include "protocol/oip/infer_codec.h"
#include "protocol/oip/metadata.h"
#include "protocol/oip/route.h"

namespace baton::protocol::oip {
namespace {

TEST(OipClient, ReadsTheMetadataThatTheServerWrites) {
  ModelConfig config;
  config.name = "mlp";
  config.max_batch_size = 8;
  config.inputs = {{.name = "x", .type = DataType::kFp32, .dims = {512}}};
  config.outputs = {{.name = "y", .type = DataType::kBytes, .dims = {-1, 2}}};
  json::JsonParser parser;
  const std::vector<int64_t> versions = {1};
  const auto metadata = parse_model_metadata(model_metadata_json(config, versions), parser);
  ASSERT_TRUE(metadata.has_value()) << metadata.error();
  EXPECT_EQ(metadata->name, "mlp");
  EXPECT_EQ(metadata->inputs.at(0).dims, (Shape{-1, 512}));
  EXPECT_EQ(metadata->outputs.at(0).type, DataType::kBytes);
  EXPECT_EQ(metadata->outputs.at(0).dims, (Shape{-1, -1, 2}));
}

TEST(OipClient, RefusesWhatIsNoMetadata) {
  json::JsonParser parser;
  EXPECT_FALSE(parse_model_metadata("<html>", parser).has_value());
  EXPECT_FALSE(parse_model_metadata(R"({"inputs":[{"datatype":"FP99"}]})", parser).has_value());
}

TEST(OipClient, WritesRequestsThatTheServerReads) {
  const std::array<float, 3> values = {1, 2, 3};
  const Tensor input{"x", DataType::kFp32, {1, 3}, std::as_bytes(std::span(values))};
  EncodedRequest encoded = encode_infer_request({&input, 1});
  const std::string length = std::to_string(encoded.header_length);
  const size_t size = encoded.body.size();
  encoded.body.resize(size + 64);
  json::JsonParser parser;
  const auto decoded =
      decode_infer_request({.bytes = std::string_view(encoded.body).substr(0, size),
                            .storage = {},
                            .header_length = length},
                           parser);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(decoded->request.inputs.at(0).shape, (Shape{1, 3}));
  EXPECT_EQ(decoded->request.inputs.at(0).data.size(), sizeof values);
}

TEST(OipClient, EncodesNamesForTheRoute) {
  const auto route = parse_route("GET", model_target("a b/ü%"));
  ASSERT_TRUE(route.has_value());
  EXPECT_EQ(route->model, "a b/ü%");
}

}  // namespace
}  // namespace baton::protocol::oip
