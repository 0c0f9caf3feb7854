#include <gtest/gtest.h>

#include <cstring>

#include "baton_inference.pb.h"
#include "protocol/oip_proto/infer_message.h"
#include "protocol/oip_proto/statistics.h"

namespace baton::protocol::oip_proto {
namespace {

using inference::ModelInferRequest;

ModelInferRequest one_input(std::string_view datatype, std::vector<int64_t> shape) {
  ModelInferRequest message;
  message.set_model_name("m");
  auto* input = message.add_inputs();
  input->set_name("x");
  input->set_datatype(std::string(datatype));
  for (int64_t dim : shape) input->add_shape(dim);
  return message;
}

Result<DecodedMessage, Refusal> decode(const ModelInferRequest& message) {
  return decode_infer_request(std::make_shared<const ModelInferRequest>(message));
}

std::string refusal(const ModelInferRequest& message, EndReason reason = EndReason::kInvalid) {
  const auto decoded = decode(message);
  if (decoded.has_value()) return "accepted";
  EXPECT_EQ(decoded.error().reason, reason) << decoded.error().message;
  return decoded.error().message;
}

template <class T>
std::vector<T> values(const Tensor& tensor) {
  std::vector<T> out(tensor.data.size() / sizeof(T));
  std::memcpy(out.data(), tensor.data.data(), tensor.data.size());
  return out;
}

TEST(DecodeInferRequest, ReadsRawContentsInPlace) {
  auto message = std::make_shared<ModelInferRequest>(one_input("FP16", {1, 2}));
  message->set_model_version("3");
  message->set_id("id-7");
  message->add_raw_input_contents(std::string("\x00\x3c\xff\x7e", 4));
  message->add_outputs()->set_name("y");
  const auto decoded = decode_infer_request(message);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  const InferRequest& request = decoded->request;
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.version, 3);
  EXPECT_EQ(request.context.client_id, "id-7");
  EXPECT_EQ(request.inputs[0].shape, Shape({1, 2}));
  EXPECT_EQ(static_cast<const void*>(request.inputs[0].data.data()),
            message->raw_input_contents(0).data());  // not copied
  EXPECT_EQ(request.outputs[0].name, "y");
}

TEST(DecodeInferRequest, ReadsTypedContentsOfEveryType) {
  const auto read = [](std::string_view type, auto fill) {
    auto message = one_input(type, {2});
    fill(*message.mutable_inputs(0)->mutable_contents());
    auto decoded = decode(message);
    EXPECT_TRUE(decoded.has_value()) << type << (decoded ? "" : decoded.error().message);
    return *std::move(decoded);
  };
  const auto ints = [](auto& contents) {
    contents.add_int_contents(-1);
    contents.add_int_contents(100);
  };
  const auto uints = [](auto& contents) {
    contents.add_uint_contents(255);
    contents.add_uint_contents(1);
  };
  using Vector8 = std::vector<int8_t>;
  EXPECT_EQ(values<int8_t>(read("INT8", ints).request.inputs[0]), Vector8({-1, 100}));
  EXPECT_EQ(values<int16_t>(read("INT16", ints).request.inputs[0]),
            std::vector<int16_t>({-1, 100}));
  EXPECT_EQ(values<int32_t>(read("INT32", ints).request.inputs[0]),
            std::vector<int32_t>({-1, 100}));
  EXPECT_EQ(values<uint8_t>(read("UINT8", uints).request.inputs[0]),
            std::vector<uint8_t>({255, 1}));
  EXPECT_EQ(values<uint16_t>(read("UINT16", uints).request.inputs[0]),
            std::vector<uint16_t>({255, 1}));
  EXPECT_EQ(values<uint32_t>(read("UINT32", uints).request.inputs[0]),
            std::vector<uint32_t>({255, 1}));
  const auto longs = read("INT64", [](auto& contents) {
    contents.add_int64_contents(9007199254740993);  // U147: exact beyond 2^53
    contents.add_int64_contents(INT64_MIN);
  });
  EXPECT_EQ(values<int64_t>(longs.request.inputs[0]),
            std::vector<int64_t>({9007199254740993, INT64_MIN}));
  const auto bools = read("BOOL", [](auto& contents) {
    contents.add_bool_contents(true);
    contents.add_bool_contents(false);
  });
  EXPECT_EQ(values<uint8_t>(bools.request.inputs[0]), std::vector<uint8_t>({1, 0}));
  const auto floats = read("FP64", [](auto& contents) {
    contents.add_fp64_contents(0.1);
    contents.add_fp64_contents(-2);
  });
  EXPECT_EQ(values<double>(floats.request.inputs[0]), std::vector<double>({0.1, -2}));
  const auto strings = read("BYTES", [](auto& contents) {
    contents.add_bytes_contents("ab");
    contents.add_bytes_contents("");
  });
  const Tensor& tensor = strings.request.inputs[0];
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()),
            std::string("\2\0\0\0ab\0\0\0\0", 10));
  EXPECT_TRUE(is_valid_bytes_tensor(tensor.data, 2));
}

// U145: one or the other; FP16 and BF16 only raw.
TEST(DecodeInferRequest, RefusesMixedContents) {
  auto message = one_input("INT32", {1});
  message.mutable_inputs(0)->mutable_contents()->add_int_contents(1);
  message.add_raw_input_contents("abcd");
  EXPECT_NE(refusal(message).find("one of them"), std::string::npos);
  auto half = one_input("BF16", {1});
  half.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  EXPECT_NE(refusal(half).find("raw_input_contents"), std::string::npos);
  auto wrong_field = one_input("INT64", {1});
  wrong_field.mutable_inputs(0)->mutable_contents()->add_int_contents(1);
  EXPECT_NE(refusal(wrong_field).find("int64_contents"), std::string::npos);
  auto two = one_input("INT64", {1});
  two.mutable_inputs(0)->mutable_contents()->add_int64_contents(1);
  two.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  EXPECT_NE(refusal(two), "accepted");
}

TEST(DecodeInferRequest, RefusesWhatDoesNotFit) {
  auto short_raw = one_input("FP32", {2, 2});
  short_raw.add_raw_input_contents("123456789012345");
  EXPECT_EQ(refusal(short_raw), "input \"x\" holds 15 bytes of FP32, its shape [2,2] needs 16");
  auto count = one_input("FP32", {3});
  count.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  EXPECT_NE(refusal(count).find("holds 1 values"), std::string::npos);
  auto range = one_input("INT8", {1});
  range.mutable_inputs(0)->mutable_contents()->add_int_contents(128);
  EXPECT_NE(refusal(range).find("a number does not fit INT8"), std::string::npos);
  auto negative = one_input("UINT16", {1});
  negative.mutable_inputs(0)->mutable_contents()->add_uint_contents(65'536);
  EXPECT_NE(refusal(negative).find("a number does not fit UINT16"), std::string::npos);
  auto bytes = one_input("BYTES", {2});
  bytes.add_raw_input_contents(std::string("\1\0\0\0a\5\0\0\0b", 10));
  EXPECT_NE(refusal(bytes).find("BYTES elements"), std::string::npos);
  EXPECT_NE(refusal(one_input("FP33", {1})).find("FP33"), std::string::npos);
  EXPECT_NE(refusal(one_input("FP32", {-1})).find("[-1]"), std::string::npos);
  EXPECT_NE(refusal(one_input("FP32", {1LL << 40, 1LL << 40})), "accepted");
  auto entries = one_input("FP32", {1});
  entries.add_raw_input_contents("1234");
  entries.add_raw_input_contents("1234");
  EXPECT_NE(refusal(entries).find("2 entries for 1 inputs"), std::string::npos);
  EXPECT_NE(refusal(ModelInferRequest()).find("model_name"), std::string::npos);
  auto version = one_input("FP32", {1});
  for (const char* text : {"0", "-1", "x", "1.0", " 1", "99999999999999999999"}) {
    version.set_model_version(text);
    EXPECT_NE(refusal(version).find("positive integer"), std::string::npos);
  }
}

TEST(DecodeInferRequest, ReadsAndRefusesParameters) {
  auto base = one_input("BOOL", {1});
  base.add_raw_input_contents("\1");
  auto message = base;
  (*message.mutable_parameters())["timeout"].set_int64_param(5'000);
  (*message.mutable_parameters())["priority"].set_uint64_param(2);
  (*message.mutable_parameters())["own"].set_string_param("x");
  (*message.mutable_parameters())["sequence_id"].set_int64_param(7);
  (*message.mutable_parameters())["sequence_start"].set_bool_param(true);
  (*message.mutable_parameters())["sequence_end"].set_bool_param(false);
  const auto decoded = decode(message);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(decoded->parameters.timeout_us, 5'000U);
  EXPECT_EQ(decoded->parameters.priority, 2U);
  EXPECT_EQ(decoded->request.sequence.id.number, 7U);
  EXPECT_TRUE(decoded->request.sequence.start);
  EXPECT_FALSE(decoded->request.sequence.end);
  const auto with = [&](const char* key, auto set) {
    auto changed = base;
    set((*changed.mutable_parameters())[key]);
    return changed;
  };
  const auto number = [](int64_t value) { return [value](auto& p) { p.set_int64_param(value); }; };
  EXPECT_NE(refusal(with("timeout", number(-1))), "accepted");
  EXPECT_NE(refusal(with("timeout", [](auto& p) { p.set_string_param("1"); })), "accepted");
  EXPECT_NE(refusal(with("sequence_id", [](auto& p) { p.set_bool_param(true); })), "accepted");
  EXPECT_NE(refusal(with("sequence_start", number(1))), "accepted");
  EXPECT_NE(
      refusal(with("sequence_id", [](auto& p) { p.set_string_param(std::string(129, 'x')); })),
      "accepted");
  EXPECT_NE(refusal(with("triton_other", number(5))), "accepted");
  auto shared = base;
  shared.clear_raw_input_contents();
  auto& place = *shared.mutable_inputs(0)->mutable_parameters();
  place["shared_memory_region"].set_string_param("r");
  EXPECT_NE(refusal(shared).find("shared_memory_byte_size"), std::string::npos);
  auto classes = base;
  auto* output = classes.add_outputs();
  output->set_name("y");
  for (int64_t count : {0, -1}) {
    (*output->mutable_parameters())["classification"].set_int64_param(count);
    EXPECT_NE(refusal(classes).find("classification"), std::string::npos);
  }
  (*output->mutable_parameters())["classification"].set_string_param("3");
  EXPECT_NE(refusal(classes).find("classification"), std::string::npos);
}

TEST(DecodeInferRequest, InputsInSharedMemoryHaveNoRawContents) {
  auto message = one_input("INT32", {1, 2});
  auto& parameters = *message.mutable_inputs(0)->mutable_parameters();
  parameters["shared_memory_region"].set_string_param("r");
  parameters["shared_memory_byte_size"].set_int64_param(8);
  parameters["shared_memory_offset"].set_int64_param(16);
  auto* second = message.add_inputs();
  second->set_name("z");
  second->set_datatype("INT32");
  second->add_shape(1);
  message.add_raw_input_contents("abcd");
  auto* output = message.add_outputs();
  output->set_name("y");
  *output->mutable_parameters() = parameters;
  const auto decoded = decode(message);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  const InferRequest& request = decoded->request;
  ASSERT_NE(request.inputs[0].place, nullptr);
  EXPECT_EQ(request.inputs[0].place->region, "r");
  EXPECT_EQ(request.inputs[0].place->bytes, 8U);
  EXPECT_EQ(request.inputs[0].place->offset, 16U);
  EXPECT_EQ(request.inputs[0].data.data(), nullptr);
  EXPECT_EQ(request.inputs[1].data.size(), 4U);
  EXPECT_EQ(request.outputs[0].place->offset, 16U);
  message.add_raw_input_contents("abcd");
  EXPECT_FALSE(decode(message).has_value());
}

TEST(EncodeInferResponse, WritesWhatProtobufReads) {
  const std::string big(300, 'b');
  InferResult result;
  result.outputs = {
      {"y", DataType::kUint8, {300}, std::as_bytes(std::span(big))},
      {"empty", DataType::kFp32, {0}, {}},
  };
  const EncodedMessage encoded = encode_infer_response(result, {"m", 4, "id"});
  std::string wire = encoded.head;
  for (const auto& raw : encoded.raws) {
    wire += raw.prefix;
    wire.append(reinterpret_cast<const char*>(raw.bytes.data()), raw.bytes.size());
  }
  inference::ModelInferResponse message;
  ASSERT_TRUE(message.ParseFromString(wire));
  EXPECT_EQ(message.model_name(), "m");
  EXPECT_EQ(message.model_version(), "4");
  EXPECT_EQ(message.id(), "id");
  ASSERT_EQ(message.raw_output_contents_size(), 2);
  EXPECT_EQ(message.raw_output_contents(0), big);
  EXPECT_EQ(message.raw_output_contents(1), "");
  EXPECT_EQ(message.outputs(0).datatype(), "UINT8");
  EXPECT_EQ(message.outputs(0).shape(0), 300);
}

TEST(EncodeStatistics, CarriesEveryStageAndBatchSize) {
  ModelStatistics found;
  found.model = "m";
  found.version = 2;
  found.last_inference_ms = 7;
  found.items = 5;
  found.executions = 3;
  found.queue = {4, 900};
  found.batches = {{.items = 2, .runs = 3, .input_ns = 1, .infer_ns = 20, .output_ns = 2}};
  inference::ModelStatisticsResponse answer;
  encode_statistics(std::vector{found}, answer);
  ASSERT_EQ(answer.model_stats_size(), 1);
  const inference::ModelStatistics& model = answer.model_stats(0);
  EXPECT_EQ(model.version(), "2");
  EXPECT_EQ(model.last_inference(), 7U);
  EXPECT_EQ(model.inference_count(), 5U);
  EXPECT_EQ(model.execution_count(), 3U);
  EXPECT_EQ(model.inference_stats().queue().ns(), 900U);
  ASSERT_EQ(model.batch_stats_size(), 1);
  EXPECT_EQ(model.batch_stats(0).batch_size(), 2U);
  EXPECT_EQ(model.batch_stats(0).compute_infer().count(), 3U);
  EXPECT_EQ(model.batch_stats(0).compute_infer().ns(), 20U);
}

}  // namespace
}  // namespace baton::protocol::oip_proto
