#include "protocol/model_config/model_config.h"

#include <gtest/gtest.h>

namespace baton::protocol::model_config {
namespace {

std::string error_of(std::string_view text) {
  const auto parsed = parse_model_config(text, Unsupported::kRefuse);
  return parsed.has_value() ? "" : parsed.error().message;
}

constexpr std::string_view kInput = "input { name: 'x' data_type: TYPE_FP32 dims: [ 2 ] } ";

TEST(ModelConfig, ReadsWhatIsHonoured) {
  const auto parsed = parse_model_config(
      "name: 'm' backend: 'onnxruntime' max_batch_size: 8 "
      "input { name: 'x' data_type: TYPE_FP16 dims: [ 3, -1 ] reshape { shape: [ -1, 3 ] } } "
      "output { name: 'y' data_type: TYPE_STRING dims: [ 1 ] } "
      "instance_group { count: 2 kind: KIND_CPU } instance_group { } "
      "dynamic_batching { preferred_batch_size: [ 8, 4 ] max_queue_delay_microseconds: 100 "
      "  priority_levels: 2 default_priority_level: 2 "
      "  default_queue_policy { default_timeout_microseconds: 5000 max_queue_size: 9 } "
      "  priority_queue_policy { key: 1 value { max_queue_size: 3 } } } "
      "parameters { key: 'intra_op_thread_count' value { string_value: '2' } } "
      "optimization { graph { level: 1 } } version_policy { specific { versions: [ 3 ] } } "
      "model_warmup { name: 'w' batch_size: 2 inputs { key: 'x' value { data_type: TYPE_FP16 "
      "  dims: [ 3, 2 ] zero_data: true } } }",
      Unsupported::kRefuse);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  const ModelConfig& config = parsed->config;
  EXPECT_EQ(config.max_batch_size, 8U);
  EXPECT_EQ(config.inputs[0].type, DataType::kFp16);
  EXPECT_EQ(config.inputs[0].reshape, (Shape{-1, 3}));
  EXPECT_EQ(config.instance_count, 3U);
  EXPECT_EQ(config.batching.preferred_sizes, (std::vector<uint32_t>{4, 8}));
  EXPECT_EQ(config.batching.max_delay, Duration::us(100));
  EXPECT_EQ(config.batching.default_policy.timeout, Duration::ms(5));
  EXPECT_EQ(config.batching.level_policies.at(1).max_queue_size, 3U);
  EXPECT_EQ(config.runtime.intra_op_threads, 2);
  EXPECT_EQ(config.runtime.graph_level, 1);
  EXPECT_EQ(config.version_policy.specific, (std::vector<int64_t>{3}));
  EXPECT_EQ(config.warmups[0].batch_size, 2U);
}

TEST(ModelConfig, ShowsThePictureFormatOfAnInput) {
  auto parsed = parse_model_config(
      "input { name: 'x' data_type: TYPE_FP32 format: FORMAT_NHWC dims: [ 2, 2, 3 ] }",
      Unsupported::kRefuse);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(parsed->config.inputs[0].format, PictureFormat::kNhwc);
  encode_model_config(parsed->config);
  EXPECT_NE(parsed->config.json.find(R"("format":"FORMAT_NHWC")"), std::string::npos);
  EXPECT_EQ(error_of("input { name: 'x' data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 2 ] }"),
            "config.pbtxt: input \"x\" has 1 dims; FORMAT_NCHW takes 3");
}

std::vector<ExecutionProvider> providers_of(const std::string& text) {
  const auto parsed = parse_model_config(text, Unsupported::kRefuse);
  EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
  return parsed.has_value() ? parsed->config.runtime.providers : std::vector<ExecutionProvider>();
}

TEST(ModelConfig, ReadsExecutionProviders) {
  using Options = std::map<std::string, std::string>;
  EXPECT_TRUE(providers_of("instance_group { kind: KIND_CPU }").empty());
  const auto cuda = providers_of(
      "instance_group { kind: KIND_GPU gpus: [ 2 ] count: 3 } "
      "parameters { key: 'gpu_mem_limit' value { string_value: '1000000' } } "
      "parameters { key: 'arena_extend_strategy' value { string_value: '1' } } "
      "parameters { key: 'cudnn_conv_algo_search' value { string_value: '0' } }");
  ASSERT_EQ(cuda.size(), 1U);
  EXPECT_EQ(cuda[0].kind, ProviderKind::kCuda);
  EXPECT_EQ(cuda[0].options, (Options{{"device_id", "2"},
                                      {"gpu_mem_limit", "1000000"},
                                      {"arena_extend_strategy", "kSameAsRequested"},
                                      {"cudnn_conv_algo_search", "EXHAUSTIVE"}}));
  const auto both = providers_of(
      "instance_group { kind: KIND_GPU } optimization { execution_accelerators { "
      "gpu_execution_accelerator { name: 'tensorrt' "
      "  parameters { key: 'precision_mode' value: 'FP16' } "
      "  parameters { key: 'max_workspace_size_bytes' value: '1073741824' } "
      "  parameters { key: 'trt_engine_cache_enable' value: '1' } } } }");
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].kind, ProviderKind::kTensorRt);
  EXPECT_EQ(both[0].options, (Options{{"device_id", "0"},
                                      {"trt_fp16_enable", "1"},
                                      {"trt_max_workspace_size", "1073741824"},
                                      {"trt_engine_cache_enable", "1"}}));
  EXPECT_EQ(both[1].kind, ProviderKind::kCuda);
}

TEST(ModelConfig, RefusesProvidersThatItCannotOffer) {
  const std::string open = "optimization { execution_accelerators { ";
  const auto refused = [&](const std::string& text, const char* why) {
    EXPECT_NE(error_of(text).find(why), std::string::npos) << error_of(text);
  };
  refused(open + "gpu_execution_accelerator { name: 'openvino' } } }", "openvino");
  refused(open + "cpu_execution_accelerator { name: 'openvino' } } }", "openvino");
  refused(open +
              "gpu_execution_accelerator { name: 'tensorrt' parameters { key: 'precision_mode' "
              "value: 'FP4' } } } }",
          "FP4");
  refused(open +
              "gpu_execution_accelerator { name: 'tensorrt' parameters { key: 'speed' "
              "value: 'x' } } } }",
          "speed");
  refused("instance_group { kind: KIND_GPU gpus: [ 0, 1 ] }", "several devices");
  refused("instance_group { kind: KIND_GPU } instance_group { kind: KIND_CPU }", "several devices");
  refused("instance_group { kind: KIND_GPU gpus: [ -1 ] }", "-1");
}

TEST(ModelConfig, RefusesByPathWhatIsNotHonoured) {
  EXPECT_NE(error_of("response_cache { enable: true }").find("response_cache"), std::string::npos);
  EXPECT_NE(error_of("instance_group { kind: KIND_MODEL }").find("instance_group.kind: KIND_MODEL"),
            std::string::npos);
  EXPECT_NE(error_of("parameters { key: 'x' value { string_value: '1' } }").find("parameters.x"),
            std::string::npos);
  EXPECT_NE(error_of("optimization { cuda { graphs: true } }").find("optimization.cuda"),
            std::string::npos);
  EXPECT_NE(error_of("metric_tags { key: 'team' value: 'a' }").find("metric_tags"),
            std::string::npos);
  EXPECT_NE(error_of("sequence_batching { iterative_sequence: true }")
                .find("sequence_batching.iterative_sequence"),
            std::string::npos);
}

TEST(ModelConfig, ReadsHowFarABatchMayDiffer) {
  const auto with = [](const std::string& value) {
    return "parameters { key: 'batch_tolerance' value { string_value: '" + value + "' } }";
  };
  const auto parsed = parse_model_config(with("0.02"), Unsupported::kRefuse);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->config.batch_tolerance, 0.02);
  for (const char* value : {"", "-1", "2", "nan", "0.1x"}) {
    EXPECT_NE(error_of(with(value)).find("batch_tolerance"), std::string::npos) << value;
  }
}

TEST(ModelConfig, ReadsSequencesAndWritesThemBack) {
  constexpr std::string_view kText =
      "max_batch_size: 4 sequence_batching { max_sequence_idle_microseconds: 5000 "
      "oldest { max_candidate_sequences: 3 preferred_batch_size: [ 4, 2 ] "
      "max_queue_delay_microseconds: 100 preserve_ordering: true } "
      "control_input [ { name: 'A' control [ { kind: CONTROL_SEQUENCE_START "
      "fp32_false_true: [ 0, 2 ] } ] }, { name: 'B' control [ { kind: CONTROL_SEQUENCE_CORRID "
      "data_type: TYPE_STRING } ] }, { name: 'C' control [ { kind: CONTROL_SEQUENCE_READY "
      "bool_false_true: [ false, true ] } ] }, { name: 'D' control [ { kind: CONTROL_SEQUENCE_END "
      "int32_false_true: [ -1, 1 ] } ] } ] "
      "state [ { input_name: 'i' output_name: 'o' data_type: TYPE_FP16 dims: [ -1, 3 ] }, "
      "{ input_name: 'j' output_name: 'p' data_type: TYPE_INT8 dims: [ 2 ] initial_state [ { "
      "data_type: TYPE_INT8 dims: [ 2 ] data_file: 'f' name: 'n' } ] } ] }";
  const auto parsed = parse_model_config(kText, Unsupported::kRefuse);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  ModelConfig config = parsed->config;
  ASSERT_TRUE(config.sequences.has_value());
  EXPECT_EQ(config.sequences->idle, Duration::us(5000));
  EXPECT_EQ(config.batching.preferred_sizes, (std::vector<uint32_t>{2, 4}));
  EXPECT_EQ(config.sequences->states[0].first.dims, (Shape{1, 3}));
  EXPECT_EQ(config.sequences->states[1].first.file, "initial_state/f");
  EXPECT_EQ(live_sequences(config), 3U);
  encode_model_config(config);
  const auto again = parse_model_config_json(config.json, Unsupported::kRefuse);
  ASSERT_TRUE(again.has_value()) << again.error().message << config.json;
  EXPECT_EQ(again->config.sequences, config.sequences);
  EXPECT_EQ(again->config.batching, config.batching);
  const ModelConfig whole = with_sequence_tensors(config);
  EXPECT_EQ(whole.inputs.size(), 6U);
  EXPECT_EQ(whole.outputs.size(), 2U);
}

TEST(ModelConfig, ReadsHowQueuesTimeOutAndWhetherAnswersKeepTheirOrder) {
  const auto delayed = parse_model_config(
      "max_batch_size: 2 dynamic_batching { priority_levels: 2 default_priority_level: 2 "
      "default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 5 } "
      "priority_queue_policy { key: 1 value { max_queue_size: 3 } } }",
      Unsupported::kRefuse);
  ASSERT_TRUE(delayed.has_value()) << delayed.error().message;
  ModelConfig config = delayed->config;
  EXPECT_EQ(config.batching.default_policy.timeout_action, TimeoutAction::kDelay);
  EXPECT_EQ(config.batching.level_policies.at(1).timeout_action, TimeoutAction::kReject);
  encode_model_config(config);
  EXPECT_NE(config.json.find("\"timeout_action\":\"DELAY\""), std::string::npos);
  const auto ordered = parse_model_config(
      "max_batch_size: 2 dynamic_batching { preserve_ordering: true }", Unsupported::kRefuse);
  ASSERT_TRUE(ordered.has_value()) << ordered.error().message;
  config = ordered->config;
  EXPECT_TRUE(config.batching.preserve_ordering);
  encode_model_config(config);
  EXPECT_NE(config.json.find("\"preserve_ordering\":true"), std::string::npos);
}

TEST(ModelConfig, RefusesAnOrderThatPrioritiesOrDelaysWouldBreak) {
  EXPECT_NE(error_of("max_batch_size: 2 dynamic_batching { preserve_ordering: true "
                     "priority_levels: 2 default_priority_level: 1 }")
                .find("one priority level"),
            std::string::npos);
  for (const char* policy : {"default_queue_policy { timeout_action: DELAY }",
                             "priority_levels: 1 default_priority_level: 1 priority_queue_policy { "
                             "key: 1 value { timeout_action: DELAY } }"}) {
    EXPECT_NE(error_of("max_batch_size: 2 dynamic_batching { preserve_ordering: true " +
                       std::string(policy) + " }")
                  .find("DELAY"),
              std::string::npos);
  }
}

TEST(ModelConfig, WithWarningsTheSameFieldsAreListed) {
  const auto parsed = parse_model_config(
      "max_batch_size: 2 instance_group { kind: KIND_MODEL gpus: [ 0 ] } response_cache { }",
      Unsupported::kWarn);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->ignored,
            (std::vector<std::string>{"instance_group.kind: KIND_MODEL", "response_cache"}));
}

TEST(ModelConfig, ErrorsNameThePlace) {
  EXPECT_NE(error_of("max_batch_size: x").find("line 1"), std::string::npos);
  EXPECT_NE(error_of("\nno_such_field: 1").find("line 2"), std::string::npos);
  EXPECT_NE(error_of("dynamic_batching { }").find("max_batch_size"), std::string::npos);
  EXPECT_NE(error_of("max_batch_size: -1"), "");
  EXPECT_NE(error_of("max_batch_size: 4 dynamic_batching { preferred_batch_size: 5 }"), "");
  EXPECT_NE(error_of("max_batch_size: 4 dynamic_batching { priority_levels: 2 }"), "");
  EXPECT_NE(error_of("backend: 'python'").find("\"python\""), std::string::npos);
  EXPECT_NE(error_of("input { name: 'x' dims: [ 1 ] }").find("data_type"), std::string::npos);
  EXPECT_NE(error_of("input { name: 'x' data_type: TYPE_FP32 }").find("dims"), std::string::npos);
  EXPECT_NE(error_of("input { name: 'x' data_type: TYPE_FP32 dims: [ 0 ] }"), "");
  EXPECT_NE(error_of(std::string(kInput) + std::string(kInput)).find("twice"), std::string::npos);
  EXPECT_NE(error_of("instance_group { count: 100000 }"), "");
  EXPECT_NE(error_of("parameters { key: 'intra_op_thread_count' value { string_value: 'many' } }"),
            "");
}

TEST(ModelConfig, EncodesJsonThatTheProtocolKnows) {
  auto parsed = parse_model_config(
      std::string("name: 'm' max_batch_size: 4 ") + std::string(kInput) + "dynamic_batching { }",
      Unsupported::kRefuse);
  ASSERT_TRUE(parsed.has_value());
  encode_model_config(parsed->config);
  EXPECT_NE(parsed->config.json.find("\"max_batch_size\":4"), std::string::npos);
  EXPECT_NE(parsed->config.json.find("\"data_type\":\"TYPE_FP32\",\"dims\":[2]"),
            std::string::npos);
  EXPECT_NE(parsed->config.json.find("\"dynamic_batching\":{"), std::string::npos);
  EXPECT_FALSE(parsed->config.serialized.empty());
}

TEST(ModelConfig, ReadsTheJsonThatClientsSend) {
  for (const char* text :
       {R"({"max_batch_size": 4, "instance_group": [{"count": 2, "kind": "KIND_CPU"}],
            "dynamic_batching": {"max_queue_delay_microseconds": "100"}})",
        R"({"maxBatchSize": 4, "instanceGroup": [{"count": "2", "kind": "KIND_CPU"}],
            "dynamicBatching": {"maxQueueDelayMicroseconds": 100}})"}) {
    const auto parsed = parse_model_config_json(text, Unsupported::kRefuse);
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
    EXPECT_EQ(parsed->config.max_batch_size, 4U);
    EXPECT_EQ(parsed->config.instance_count, 2U);
    EXPECT_EQ(parsed->config.batching.max_delay, Duration::us(100));
  }
}

TEST(ModelConfig, RefusesJsonThatIsNoConfiguration) {
  const auto error = [](const std::string& text) {
    const auto parsed = parse_model_config_json(text, Unsupported::kRefuse);
    return parsed.has_value() ? "" : parsed.error().message;
  };
  EXPECT_TRUE(error("{").starts_with("config: it is no ModelConfig in JSON")) << error("{");
  EXPECT_NE(error(R"({"max_bach_size": 1})").find("max_bach_size"), std::string::npos);
  EXPECT_NE(error("[]"), "");
  EXPECT_NE(error(R"({"max_batch_size": "many"})"), "");
  EXPECT_TRUE(error(R"({"max_batch_size": -1})").starts_with("config: max_batch_size is -1"));
  EXPECT_NE(error(R"({"response_cache": {"enable": true}})").find("response_cache"),
            std::string::npos);
  EXPECT_NE(error(std::string(200'000, '[')), "");
  EXPECT_NE(error("{\"parameters\":" + std::string(200'000, '[')), "");
  EXPECT_NE(error(std::string(kMostConfigJson + 1, ' ')).find("the limit is 1048576"),
            std::string::npos);
}

}  // namespace
}  // namespace baton::protocol::model_config
