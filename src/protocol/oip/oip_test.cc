#include <gtest/gtest.h>

#include <cstring>

#include "protocol/oip/infer_codec.h"
#include "protocol/oip/log_settings.h"
#include "protocol/oip/metadata.h"
#include "protocol/oip/route.h"
#include "protocol/oip/statistics.h"
#include "protocol/oip/trace_settings.h"

namespace baton::protocol::oip {
namespace {

struct Body {
  explicit Body(std::string text) : bytes(std::move(text)) {
    size = bytes.size();
    bytes.append(64, '\0');
  }
  std::string bytes;
  size_t size = 0;
};

Result<DecodedRequest, Refusal> decode(const Body& body,
                                       std::optional<std::string_view> header_length = {}) {
  json::JsonParser parser;
  return decode_infer_request(
      {std::string_view(body.bytes).substr(0, body.size), nullptr, header_length}, parser);
}

std::string decode_error(std::string text, std::optional<std::string_view> header_length = {}) {
  const Body body(std::move(text));
  const auto result = decode(body, header_length);
  return result.has_value() ? "" : result.error().message;
}

template <class T>
std::vector<T> values(const Tensor& tensor) {
  std::vector<T> out(tensor.data.size() / sizeof(T));
  std::memcpy(out.data(), tensor.data.data(), tensor.data.size());
  return out;
}

TEST(Route, KnowsThePathsOfTheRepository) {
  EXPECT_EQ(parse_route("POST", "/v2/repository/index")->kind, RouteKind::kRepositoryIndex);
  EXPECT_EQ(parse_route("POST", "/v2/repository/r/index")->repository, "r");
  const auto load = parse_route("POST", "/v2/repository/models/a%20b/load");
  ASSERT_TRUE(load.has_value());
  EXPECT_EQ(load->kind, RouteKind::kRepositoryLoad);
  EXPECT_EQ(load->model, "a b");
  EXPECT_EQ(load->repository, "");
  const auto unload = parse_route("POST", "/v2/repository/models/models/m/unload");
  ASSERT_TRUE(unload.has_value());
  EXPECT_EQ(unload->kind, RouteKind::kRepositoryUnload);
  EXPECT_EQ(unload->repository, "models");
  EXPECT_EQ(parse_route("GET", "/v2/repository/index").error().reason,
            EndReason::kMethodNotAllowed);
  for (const char* path : {"", "/", "/models", "/models/m", "/models/m/x", "/a/b/index",
                           "/models//load", "/models/%00/load", "/index/index/index"}) {
    const auto wrong = parse_route("POST", std::string("/v2/repository") + path);
    ASSERT_FALSE(wrong.has_value()) << path;
    EXPECT_EQ(wrong.error().reason, EndReason::kNotFound) << path;
  }
}

TEST(Route, KnowsThePathsAndTheirMethods) {
  EXPECT_EQ(parse_route("GET", "/v2")->kind, RouteKind::kServerMetadata);
  EXPECT_EQ(parse_route("GET", "/v2/health/ready?x=1")->kind, RouteKind::kServerReady);
  const auto infer = parse_route("POST", "/v2/models/a%20b/versions/12/infer");
  ASSERT_TRUE(infer.has_value());
  EXPECT_EQ(infer->model, "a b");
  EXPECT_EQ(infer->version, 12);
  EXPECT_EQ(parse_route("GET", "/v2/models/m/infer").error().reason, EndReason::kMethodNotAllowed);
  EXPECT_EQ(parse_route("GET", "/v3").error().reason, EndReason::kNotFound);
  EXPECT_EQ(parse_route("GET", "/v2/models/m/versions/x").error().reason, EndReason::kInvalid);
  EXPECT_EQ(parse_route("GET", "/v2/models/%00").error().reason, EndReason::kNotFound);
  EXPECT_EQ(parse_route("GET", "/v2/models/m/a/b/c/d/e/f/g/h/i").error().reason,
            EndReason::kNotFound);
}

TEST(DecodeRequest, ReadsJsonTensors) {
  const Body body(R"({"id":"7","parameters":{"timeout":1500,"priority":2},
    "inputs":[{"name":"x","shape":[2,2],"datatype":"FP32","data":[[1,2],[3,4]]}],
    "outputs":[{"name":"y"}]})");
  const auto decoded = decode(body);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(decoded->request.context.client_id, "7");
  EXPECT_EQ(decoded->parameters.timeout_us, 1500U);
  EXPECT_EQ(decoded->parameters.priority, 2U);
  EXPECT_EQ(values<float>(decoded->request.inputs[0]), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_FALSE(decoded->request.outputs[0].binary);
}

TEST(DecodeRequest, DataMayStandBeforeItsType) {
  const Body body(
      R"({"inputs":[{"data":[1,2],"name":"x","datatype":"INT64","shape":[2]},
                    {"name":"s","shape":[1],"data":["a"],"datatype":"BYTES"}]})");
  const auto decoded = decode(body);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(values<int64_t>(decoded->request.inputs[0]), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(decoded->request.inputs[1].data.size(), 5U);
}

TEST(DecodeRequest, SaysWhatItKeepsInMemory) {
  std::string text = R"({"inputs":[{"name":"x","datatype":"INT64","shape":[1000],"data":[1)";
  for (int i = 1; i < 1000; ++i) text += ",1";
  const Body body(text + "]}]}");
  const auto decoded = decode(body);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_GE(decoded->request.context.bytes, 8000U);
  EXPECT_EQ(decoded->request.storage.size(), 1U);  // the text is not kept
}

TEST(DecodeRequest, ReadsBinaryTensorsInPlace) {
  const std::string json =
      R"({"parameters":{"binary_data_output":true},"inputs":[{"name":"x","shape":[2],)"
      R"("datatype":"INT32","parameters":{"binary_data_size":8}}],"outputs":[{"name":"y"},)"
      R"({"name":"z","parameters":{"binary_data":false}}]})";
  const Body body(json + std::string("\1\0\0\0\2\0\0\0", 8));
  const auto decoded = decode(body, std::to_string(json.size()));
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(values<int32_t>(decoded->request.inputs[0]), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(static_cast<const void*>(decoded->request.inputs[0].data.data()),
            static_cast<const void*>(body.bytes.data() + json.size()));
  EXPECT_TRUE(decoded->request.outputs[0].binary);
  EXPECT_FALSE(decoded->request.outputs[1].binary);
}

TEST(DecodeRequest, HeaderLengthMustLieWithinTheBody) {  // server#8925
  for (const char* length : {"-1", "99999999999999999999", "3000", "x", "", "1 "}) {
    EXPECT_NE(decode_error(R"({"inputs":[]})", length), "") << length;
  }
}

// The error of a request whose one input has these members.
std::string input_error(const std::string& members) {
  return decode_error("{\"inputs\":[{" + members + "}]}");
}

TEST(DecodeRequest, SizesMustMatchTheShape) {
  for (const char* members :
       {R"("name":"x","shape":[3],"datatype":"FP32","data":[1,2])",
        R"("name":"x","shape":[1],"datatype":"FP32","data":[1,2])",
        R"("name":"x","shape":[-1],"datatype":"FP32","data":[1])",
        R"("name":"x","shape":[4294967296,4294967296],"datatype":"FP32","data":[1])",
        R"("name":"x","shape":[1],"datatype":"FP32","parameters":{"binary_data_size":8})",
        R"("name":"x","shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":0})",
        R"("name":"x","shape":[1],"datatype":"FP32")",
        R"("shape":[1],"datatype":"FP32","data":[1])", R"("name":"x","datatype":"FP32","data":[1])",
        R"("name":"x","shape":[1],"data":[1])",
        R"("name":"x","shape":[1],"datatype":"FP33","data":[1])"}) {
    EXPECT_NE(input_error(members), "") << members;
  }
  EXPECT_NE(decode_error(R"({"outputs":[]})"), "");
  EXPECT_EQ(decode_error(R"({"inputs":[]})"), "");  // of a model without inputs
  EXPECT_NE(decode_error(R"([])"), "");
}

TEST(DecodeRequest, ASizeThatOverflowsIsRefused) {
  const std::string size = "18446744073709551615";
  EXPECT_NE(input_error(R"("name":"x","shape":[1],"datatype":"FP32",)"
                        R"("parameters":{"binary_data_size":)" +
                        size + "}"),
            "");
}

TEST(DecodeRequest, AWrongValueIsReportedWithItsInput) {  // U147
  EXPECT_EQ(
      decode_error(
          R"({"inputs":[{"name":"ids","shape":[1],"datatype":"INT32","data":[2147483648]}]})"),
      "the request is not valid: input \"ids\": a number does not fit INT32");
}

TEST(DecodeRequest, LeftOverBinaryBytesAreRefused) {
  const std::string json = R"({"inputs":[{"name":"x","shape":[1],"datatype":"UINT8","data":[1]}]})";
  EXPECT_NE(decode_error(json + "zz", std::to_string(json.size())), "");
}

TEST(DecodeRequest, ReservedParametersAreRefused) {  // server#8763
  EXPECT_NE(decode_error(R"({"parameters":{"triton_x":1},"inputs":[{"name":"x","shape":[1],)"
                         R"("datatype":"UINT8","data":[1]}]})"),
            "");
}

TEST(EncodeResponse, WritesEveryTypeAsJson) {
  InferRequest request;
  request.context.client_id = "q\"";
  InferResult result;
  const uint16_t half[] = {0x3c00};
  const int64_t big[] = {9007199254740993};
  const std::string text("\2\0\0\0hi", 6);
  result.outputs.push_back({"h", DataType::kFp16, {1}, std::as_bytes(std::span(half))});
  result.outputs.push_back({"i", DataType::kInt64, {1, 1}, std::as_bytes(std::span(big))});
  result.outputs.push_back({"s", DataType::kBytes, {1}, std::as_bytes(std::span(text))});
  const auto encoded = encode_infer_response(request, result, {"m", 3});
  ASSERT_TRUE(encoded.has_value());
  EXPECT_EQ(encoded->json,
            R"({"id":"q\"","model_name":"m","model_version":"3","outputs":[)"
            R"({"name":"h","datatype":"FP16","shape":[1],"data":[1]},)"
            R"({"name":"i","datatype":"INT64","shape":[1,1],"data":[9007199254740993]},)"
            R"({"name":"s","datatype":"BYTES","shape":[1],"data":["hi"]}]})");
}

TEST(EncodeResponse, BytesThatAreNotUtf8AreNotBentIntoJson) {
  InferRequest request;
  InferResult result;
  const std::string text("\1\0\0\0\xff", 5);
  result.outputs.push_back({"s", DataType::kBytes, {1}, std::as_bytes(std::span(text))});
  EXPECT_FALSE(encode_infer_response(request, result, {"m", 1}).has_value());
  request.binary_outputs_by_default = true;
  const auto encoded = encode_infer_response(request, result, {"m", 1});
  ASSERT_TRUE(encoded.has_value());
  EXPECT_EQ(encoded->binary.size(), 1U);
}

TEST(Errors, CarryReasonAndStatus) {
  const Refusal refusal{EndReason::kQueueFull, "full", Duration::ms(1200)};
  EXPECT_EQ(error_json(refusal), R"({"error":"full","reason":"queue_full"})");
  EXPECT_EQ(http_status(refusal.reason), 503);
  EXPECT_EQ(retry_after_seconds(refusal), 2);
}

TEST(InferRequest, ReadsHowManyClassesAnOutputHas) {
  const auto text = [](const std::string& count) {
    return R"({"inputs":[],"outputs":[{"name":"y","parameters":{"classification":)" + count +
           "}}]}";
  };
  const Body body(text("3"));
  EXPECT_EQ(decode(body)->request.outputs[0].classification, 3U);
  const Body many(text("5000000000"));
  EXPECT_EQ(decode(many)->request.outputs[0].classification, UINT32_MAX);
  for (const char* wrong : {"0", "-1", "1.5", "\"3\"", "true", "null", "[1]"}) {
    EXPECT_NE(decode_error(text(wrong)).find("classification"), std::string::npos) << wrong;
  }
}

TEST(InferRequest, ReadsWhereTensorsStandInSharedMemory) {
  const Body body(
      R"({"inputs":[{"name":"x","datatype":"FP32","shape":[2],"parameters":)"
      R"({"shared_memory_region":"r","shared_memory_byte_size":8,"shared_memory_offset":4}}],)"
      R"("outputs":[{"name":"y","parameters":)"
      R"({"shared_memory_region":"s","shared_memory_byte_size":9}}]})");
  const auto decoded = decode(body);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  const MemoryPlace& in = *decoded->request.inputs[0].place;
  EXPECT_EQ(in.region, "r");
  EXPECT_EQ(in.bytes, 8U);
  EXPECT_EQ(in.offset, 4U);
  const MemoryPlace& out = *decoded->request.outputs[0].place;
  EXPECT_EQ(out.region, "s");
  EXPECT_EQ(out.bytes, 9U);
}

TEST(Route, NamesRegionsOfSharedMemory) {
  const auto route = parse_route("POST", "/v2/systemsharedmemory/region/a%20b/register");
  ASSERT_TRUE(route.has_value());
  EXPECT_EQ(route->kind, RouteKind::kMemoryRegister);
  EXPECT_EQ(route->model, "a b");
  EXPECT_EQ(parse_route("GET", "/v2/systemsharedmemory/status")->kind, RouteKind::kMemoryStatus);
  EXPECT_EQ(parse_route("POST", "/v2/cudasharedmemory/unregister")->kind,
            RouteKind::kCudaMemoryRemove);
  EXPECT_EQ(parse_route("POST", "/v2/systemsharedmemory/register").error().reason,
            EndReason::kNotFound);
  EXPECT_EQ(parse_route("GET", "/v2/systemsharedmemory/region/a/unregister").error().reason,
            EndReason::kMethodNotAllowed);
  EXPECT_EQ(parse_route("GET", "/v2/systemsharedmemory/region/a/b/status").error().reason,
            EndReason::kNotFound);
}

TEST(LogSettings, AreAppliedAllOrNone) {
  json::JsonParser parser;
  const LogSettings current{.info = true, .verbose_level = 2};
  const auto set = parse_log_settings(
      R"({"log_info":false,"log_verbose_level":1,"log_format":"ISO8601"})", parser, current);
  ASSERT_TRUE(set.has_value()) << set.error().message;
  EXPECT_EQ(*set, (LogSettings{.info = false, .verbose_level = 1}));
  EXPECT_EQ(log_settings_json(*set),
            R"({"log_file":"","log_info":false,"log_warning":true,"log_error":true,)"
            R"("log_verbose_level":1,"log_format":"ISO8601"})");
  for (const char* wrong : {R"({"log_info":1})", R"({"log_verbose_level":-1})", R"({"other":true})",
                            R"({"log_info":null})", R"({"log_file":true})", "[]", ""}) {
    const auto refused = parse_log_settings(wrong, parser, current);
    ASSERT_FALSE(refused.has_value()) << wrong;
    EXPECT_EQ(refused.error().reason, EndReason::kInvalid) << wrong;
  }
  for (const char* fixed : {R"({"log_file":"/tmp/x"})", R"({"log_format":"default"})"}) {
    EXPECT_EQ(parse_log_settings(fixed, parser, current).error().reason, EndReason::kUnsupported);
  }
}

TEST(Route, LoggingTakesGetAndPost) {
  EXPECT_EQ(parse_route("GET", "/v2/logging")->kind, RouteKind::kLogSettings);
  EXPECT_EQ(parse_route("POST", "/v2/logging")->kind, RouteKind::kUpdateLogSettings);
  EXPECT_EQ(parse_route("PUT", "/v2/logging").error().reason, EndReason::kMethodNotAllowed);
  EXPECT_EQ(allowed_methods("/v2/logging"), "GET, HEAD, POST");
}

TEST(TraceSettings, AreAppliedAllOrNone) {
  json::JsonParser parser;
  const TraceOverrides current{.rate = 7, .count = 3};
  const auto read = [&](std::string_view body) {
    return parse_trace_settings(body, parser, "/t", current);
  };
  const auto set = read(R"({"trace_level":["TIMESTAMPS"],"trace_rate":"2","trace_count":null,)"
                        R"("log_frequency":10,"trace_file":"/t"})");
  ASSERT_TRUE(set.has_value()) << set.error().message;
  EXPECT_EQ(*set, (TraceOverrides{.timestamps = true, .rate = 2, .log_frequency = 10}));
  EXPECT_EQ(trace_settings_json(set->over({}), "/t"),
            R"({"trace_file":"/t","trace_level":["TIMESTAMPS"],"trace_rate":"2",)"
            R"("trace_count":"-1","log_frequency":"10"})");
  EXPECT_EQ(*read("{}"), current);
  EXPECT_EQ(read(R"({"trace_level":"OFF"})")->timestamps, false);
  EXPECT_EQ(read(R"({"trace_rate":[]})")->rate, std::nullopt);
  for (const char* wrong :
       {R"({"trace_rate":"0"})", R"({"trace_rate":"1x"})", R"({"trace_rate":["1","2"]})",
        R"({"trace_count":"-2"})", R"({"log_frequency":"-1"})", R"({"trace_level":["MAX"]})",
        R"({"trace_level":["OFF","TIMESTAMPS"]})", R"({"trace_rate":true})", R"({"other":"1"})",
        R"({"trace_rate":"18446744073709551616"})", R"({"trace_rate":{}})", "[]", "",
        R"({"trace_level":["OFF","OFF","OFF","OFF","OFF","OFF","OFF","OFF","OFF"]})"}) {
    const auto refused = read(wrong);
    ASSERT_FALSE(refused.has_value()) << wrong;
    EXPECT_EQ(refused.error().reason, EndReason::kInvalid) << wrong;
  }
  for (const char* fixed : {R"({"trace_file":"/other"})", R"({"trace_level":["TENSORS"]})"}) {
    EXPECT_EQ(read(fixed).error().reason, EndReason::kUnsupported);
  }
  EXPECT_TRUE(check_trace_overrides("", *set).has_value());
  EXPECT_EQ(check_trace_overrides("m", *set).error().reason, EndReason::kUnsupported);
}

TEST(Route, TraceSettingsAreTheServersOrAModels) {
  EXPECT_EQ(parse_route("GET", "/v2/trace/setting")->kind, RouteKind::kTraceSettings);
  EXPECT_EQ(parse_route("POST", "/v2/trace/setting")->model, "");
  const auto route = parse_route("POST", "/v2/models/a%20b/trace/setting");
  EXPECT_EQ(route->kind, RouteKind::kUpdateTraceSettings);
  EXPECT_EQ(route->model, "a b");
  EXPECT_EQ(parse_route("HEAD", "/v2/models/m/trace/setting")->kind, RouteKind::kTraceSettings);
  EXPECT_EQ(parse_route("PUT", "/v2/models/m/trace/setting").error().reason,
            EndReason::kMethodNotAllowed);
  EXPECT_EQ(parse_route("GET", "/v2/models/m/trace").error().reason, EndReason::kNotFound);
  EXPECT_EQ(parse_route("GET", "/v2/models/m/versions/1/trace/setting").error().reason,
            EndReason::kNotFound);
}

TEST(Statistics, HaveTheProtocolsNames) {
  ModelStatistics model;
  model.model = "m";
  model.version = 3;
  model.items = 8;
  model.executions = 2;
  model.success = {4, 90};
  model.batches = {{.items = 4, .runs = 2, .input_ns = 1, .infer_ns = 2, .output_ns = 3}};
  const std::string text = statistics_json(std::vector{model});
  for (const char* part : {
           R"({"model_stats":[{"name":"m","version":"3","last_inference":0,"inference_count":8,)",
           R"("execution_count":2,"inference_stats":{"success":{"count":4,"ns":90},)",
           R"("batch_stats":[{"batch_size":4,"compute_input":{"count":2,"ns":1},)",
       }) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

}  // namespace
}  // namespace baton::protocol::oip
