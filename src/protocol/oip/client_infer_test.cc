#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "base/bytes.h"
#include "protocol/oip/client.h"
#include "protocol/oip/client_answer.h"
#include "protocol/oip/client_inputs.h"
#include "protocol/oip/infer_codec.h"

namespace baton::protocol::oip {
namespace {

using namespace std::string_literals;

TEST(IsInferRequest, TellsARequestFromNamedArrays) {
  json::JsonParser parser;
  EXPECT_TRUE(is_infer_request(R"({"inputs":[{"name":"x"}]})", parser).value());
  EXPECT_TRUE(is_infer_request(R"({"id":"7","inputs":[]})", parser).value());
  EXPECT_FALSE(is_infer_request(R"({"inputs":[[1,2]]})", parser).value());  // an input's name
  EXPECT_FALSE(is_infer_request(R"({"x":[1]})", parser).value());
  EXPECT_FALSE(is_infer_request("[1]", parser).has_value());
  EXPECT_FALSE(is_infer_request(R"({"x":)", parser).has_value());
}

std::vector<TensorSpec> specs() {
  return {{.name = "x", .type = DataType::kInt16, .dims = {-1, 2}},
          {.name = "s", .type = DataType::kBytes, .dims = {-1}}};
}

Result<InferRequest, std::string> named_arrays(std::string_view text) {
  json::JsonParser parser;
  InferRequest request;
  BATON_TRY(read_named_arrays(text, specs(), request, parser));
  return request;
}

TEST(ReadNamedArrays, TakesTypesFromTheModelAndShapesFromTheNesting) {
  const auto request = named_arrays(R"({"s":["a",""],"x":[[1,2],[3,-4],[5,6]]})");
  ASSERT_TRUE(request.has_value()) << request.error();
  EXPECT_EQ(request->inputs.at(0).name, "s");
  EXPECT_EQ(request->inputs.at(0).shape, (Shape{2}));
  EXPECT_EQ(as_chars(request->inputs.at(0).data), "\1\0\0\0a\0\0\0\0"s);
  EXPECT_EQ(request->inputs.at(1).shape, (Shape{3, 2}));
  EXPECT_EQ(as_chars(request->inputs.at(1).data), "\1\0\2\0\3\0\xfc\xff\5\0\6\0"s);
  EXPECT_TRUE(named_arrays(R"({"x":7})")->inputs.at(0).shape.empty());
  EXPECT_EQ(named_arrays(R"({"x":[[],[]]})")->inputs.at(0).shape, (Shape{2, 0}));
}

TEST(ReadNamedArrays, NamesWhatIsWrong) {
  EXPECT_NE(named_arrays(R"({"y":[1]})").error().find("no input \"y\""), std::string::npos);
  for (const char* text : {R"({"x":[[1,2],[3]]})", R"({"x":[1,[2]]})", R"({"x":[40000]})",
                           R"({"x":["1"]})", R"({"x":null})", R"({"s":[1]})", R"({"x":{}})"}) {
    const auto request = named_arrays(text);
    ASSERT_FALSE(request.has_value()) << text;
    EXPECT_NE(request.error().find("input \""), std::string::npos) << request.error();
  }
  EXPECT_FALSE(named_arrays(std::string(R"({"x":)") + std::string(5000, '[')).has_value());
}

TEST(ParseInferAnswer, ReadsBothFormsOfTheServer) {
  const std::array<float, 2> floats = {1.5, -2};
  const std::string words = "\2\0\0\0hi"s;
  InferResult result;
  result.outputs = {{"f", DataType::kFp32, {1, 2}, std::as_bytes(std::span(floats))},
                    {"w", DataType::kBytes, {1}, std::as_bytes(std::span(words))}};
  for (const bool binary : {false, true}) {
    InferRequest request;
    request.binary_outputs_by_default = binary;
    const auto encoded = encode_infer_response(request, result, {"m", 3});
    ASSERT_TRUE(encoded.has_value());
    std::string body = encoded->json;
    for (const auto part : encoded->binary) body += as_chars(part);
    const std::string length = std::to_string(encoded->json.size());
    json::JsonParser parser;
    const auto answer = parse_infer_answer(
        body, binary ? std::optional<std::string_view>(length) : std::nullopt, parser);
    ASSERT_TRUE(answer.has_value()) << answer.error();
    EXPECT_EQ(answer->model, "m");
    EXPECT_EQ(answer->version, "3");
    EXPECT_EQ(answer->result.outputs.at(0).shape, (Shape{1, 2}));
    EXPECT_EQ(elements_text(answer->result.outputs.at(0), 8), "1.5, -2");
    EXPECT_EQ(elements_text(answer->result.outputs.at(1), 8), "\"hi\"");
  }
}

TEST(ParseInferAnswer, ReadsDataThatStandBeforeTheirType) {
  json::JsonParser parser;
  const auto answer = parse_infer_answer(
      R"({"outputs":[{"data":[[1],[2]],"shape":[2,1],"datatype":"UINT8","name":"y"}]})",
      std::nullopt, parser);
  ASSERT_TRUE(answer.has_value()) << answer.error();
  EXPECT_EQ(as_chars(answer->result.outputs.at(0).data), "\1\2");
}

TEST(ParseInferAnswer, RefusesWhatIsNoAnswer) {
  json::JsonParser parser;
  const std::string start = R"({"outputs":[{"name":"y","datatype":"INT8","shape":[2])";
  for (const std::string& end :
       {R"(}]})"s, R"(,"data":[1]}]})"s, R"(,"data":[1,2,3]}]})"s, R"(,"data":[1,"2"]}]})"s,
        R"(,"data":[1,2],"parameters":{"binary_data_size":2}}]})"s,
        R"(,"parameters":{"binary_data_size":2}}]})"s}) {
    EXPECT_FALSE(parse_infer_answer(start + end, std::nullopt, parser).has_value()) << end;
  }
  const std::string binary = start + R"(,"parameters":{"binary_data_size":2}}]})";
  for (const char* length : {"x", "-1", "9999", ""}) {
    EXPECT_FALSE(parse_infer_answer(binary + "ab", length, parser).has_value()) << length;
  }
  EXPECT_FALSE(parse_infer_answer("<html>", std::nullopt, parser).has_value());
  EXPECT_FALSE(parse_infer_answer(R"({"outputs":[{"name":"y","datatype":"INT8","shape":[-1],)"
                                  R"("data":[]}]})",
                                  std::nullopt, parser)
                   .has_value());
}

TEST(ErrorText, IsTheServersSentence) {
  json::JsonParser parser;
  EXPECT_EQ(error_text(R"({"error":"no \"x\""})", parser), "no \"x\"");
  EXPECT_EQ(error_text("<html>", parser), "<html>");
}

TEST(ElementsText, WritesEveryTypeForPeople) {
  const auto text = [](DataType type, std::string_view bytes) {
    return elements_text({"x", type, {1}, std::as_bytes(std::span(bytes))}, 1);
  };
  const std::string ones(8, '\xff');
  EXPECT_EQ(text(DataType::kBool, "\1"), "true");
  EXPECT_EQ(text(DataType::kUint8, ones), "255");
  EXPECT_EQ(text(DataType::kInt8, ones), "-1");
  EXPECT_EQ(text(DataType::kUint16, ones), "65535");
  EXPECT_EQ(text(DataType::kInt16, ones), "-1");
  EXPECT_EQ(text(DataType::kUint32, ones), "4294967295");
  EXPECT_EQ(text(DataType::kInt32, ones), "-1");
  EXPECT_EQ(text(DataType::kUint64, ones), "18446744073709551615");
  EXPECT_EQ(text(DataType::kInt64, ones), "-1");
  EXPECT_EQ(text(DataType::kFp16, "\x00\x3c"s), "1");
  EXPECT_EQ(text(DataType::kBf16, "\x80\xbf"s), "-1");
  EXPECT_EQ(text(DataType::kFp32, "\x00\x00\x80\x7f"s), "inf");
  EXPECT_EQ(text(DataType::kFp64, ones), "nan");
  EXPECT_EQ(text(DataType::kBytes, "\3\0\0\0a\n\x1b"s), "\"a\\n\\u001b\"");
  const std::string large = "\xff\0\0\0"s + std::string(255, 'x');
  EXPECT_EQ(text(DataType::kBytes, large), "\"" + std::string(80, 'x') + "\"...");
}

TEST(ElementsText, SaysThatThereAreMore) {
  const std::string bytes = "\1\2\3";
  const Tensor tensor{"x", DataType::kInt8, {3}, std::as_bytes(std::span(bytes))};
  EXPECT_EQ(elements_text(tensor, 2), "1, 2, ...");
  EXPECT_EQ(elements_text(tensor, 3), "1, 2, 3");
}

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("logits:0"), "logits:0");
  EXPECT_EQ(printable("a\x1b[2J"), "\"a\\u001b[2J\"");
}

TEST(PathSegment, IsTheNameOfOneFile) {
  EXPECT_EQ(path_segment("../a:b/ü"), "..%2Fa%3Ab%2F%C3%BC");
}

}  // namespace
}  // namespace baton::protocol::oip
