#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "adapters/onnx/ort_library.h"
#include "adapters/onnx/testing/onnx_writer.h"
#include "ports/testing/manual_clock.h"

namespace baton::adapters::onnx {
namespace {

namespace fs = std::filesystem;

class NoLog final : public ports::Log {
 public:
  void log(ports::LogLevel, std::string message) override { last = std::move(message); }
  std::string last;
};

class OrtTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* library = getenv("BATON_ORT_LIBRARY");
    ASSERT_NE(library, nullptr) << "set BATON_ORT_LIBRARY";
    auto opened = open_onnxruntime({library}, log_, clock_);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    loader_ = std::move(*opened);
    std::string pattern = (fs::temp_directory_path() / "baton_onnx_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<ports::ModelRuntime> load(const std::string& bytes) {
    const std::string path = (folder_ / "model.onnx").string();
    std::ofstream(path, std::ios::binary) << bytes;
    auto loaded = loader_->load(path, {});
    EXPECT_TRUE(loaded.has_value()) << loaded.error().message;
    return loaded.has_value() ? std::move(*loaded) : nullptr;
  }

  static InferRequest add_request(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
    InferRequest request;
    const auto rows = static_cast<int64_t>(a.size() / 16);
    request.items = static_cast<uint64_t>(rows);
    request.inputs.push_back({"INPUT0", DataType::kInt32, {rows, 16}, std::as_bytes(std::span(a))});
    request.inputs.push_back({"INPUT1", DataType::kInt32, {rows, 16}, std::as_bytes(std::span(b))});
    return request;
  }
  static ModelConfig batching() {
    ModelConfig config;
    config.max_batch_size = 8;
    return config;
  }
  static std::vector<int32_t> ints(const Tensor& tensor) {
    std::vector<int32_t> out(tensor.data.size() / 4);
    std::memcpy(out.data(), tensor.data.data(), tensor.data.size());
    return out;
  }

  NoLog log_;
  ports::testing::ManualClock clock_;
  std::unique_ptr<ports::RuntimeLoader> loader_;
  fs::path folder_;
};

// The library that baton is tested with has no GPU providers.
TEST_F(OrtTest, SaysThatAProviderIsMissing) {
  const std::string path = (folder_ / "model.onnx").string();
  std::ofstream(path, std::ios::binary) << testing::add_sub_model();
  for (const ProviderKind kind : {ProviderKind::kCuda, ProviderKind::kTensorRt}) {
    RuntimeOptions options;
    options.providers = {{kind, {{"device_id", "0"}}}};
    const auto failed = loader_->load(path, options);
    ASSERT_FALSE(failed.has_value());
    EXPECT_NE(failed.error().message.find(provider_name(kind)), std::string::npos);
    auto lenient = open_onnxruntime({getenv("BATON_ORT_LIBRARY"), true}, log_, clock_);
    ASSERT_TRUE(lenient.has_value());
    const auto loaded = (*lenient)->load(path, options);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    ASSERT_EQ((*loaded)->remarks().size(), 1U);
    EXPECT_NE((*loaded)->remarks()[0].find(provider_name(kind)), std::string::npos);
  }
}

TEST_F(OrtTest, ReadsTheSignature) {
  const auto runtime = load(testing::add_sub_model());
  ASSERT_NE(runtime, nullptr);
  ASSERT_EQ(runtime->signature().inputs.size(), 2U);
  EXPECT_EQ(runtime->signature().inputs[0].dims, (Shape{-1, 16}));
  EXPECT_EQ(runtime->signature().outputs[1].type, DataType::kInt32);
}

TEST_F(OrtTest, ABatchGivesEachMemberItsRowsAndOutputs) {
  const auto runtime = load(testing::add_sub_model());
  auto instance = runtime->create_instance({});
  ASSERT_TRUE(instance.has_value());
  const std::vector<int32_t> one(16, 1), two(32, 2), five(16, 5), seven(32, 7);
  InferRequest first = add_request(one, five);
  InferRequest second = add_request(two, seven);
  second.outputs.push_back({.name = "OUTPUT1"});
  const std::array<const InferRequest*, 2> members = {&first, &second};
  const auto batch = (*instance)->run(members);
  ASSERT_TRUE(batch.has_value()) << batch.error().message;
  ASSERT_EQ(batch->results[0].outputs.size(), 2U);
  EXPECT_EQ(ints(batch->results[0].outputs[0]), std::vector<int32_t>(16, 6));
  ASSERT_EQ(batch->results[1].outputs.size(), 1U);
  EXPECT_EQ(batch->results[1].outputs[0].shape, (Shape{2, 16}));
  EXPECT_EQ(ints(batch->results[1].outputs[0]), std::vector<int32_t>(32, -5));
}

TEST_F(OrtTest, MisalignedInputsAreCopiedNotMisread) {
  const auto runtime = load(testing::add_sub_model());
  auto instance = runtime->create_instance({});
  std::vector<std::byte> bytes(16 * 4 + 1);
  const std::vector<int32_t> values(16, 3);
  std::memcpy(bytes.data() + 1, values.data(), 64);
  InferRequest request = add_request(values, values);
  request.inputs[0].data = std::span(bytes).subspan(1);
  const std::array<const InferRequest*, 1> members = {&request};
  const auto batch = (*instance)->run(members);
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(ints(batch->results[0].outputs[0]), std::vector<int32_t>(16, 6));
}

TEST_F(OrtTest, AnAnswerKeepsItsBytesWhileOthersRun) {
  const auto runtime = load(testing::add_sub_model());
  auto instance = runtime->create_instance(batching());
  ASSERT_TRUE(instance.has_value());
  std::vector<ports::BatchResult> kept;
  for (int32_t i = 0; i < 20; ++i) {
    const std::vector<int32_t> values(size_t{16} * static_cast<size_t>(1 + i % 3), i);
    const InferRequest request = add_request(values, values);
    const std::array<const InferRequest*, 1> members = {&request};
    auto result = (*instance)->run(members);
    ASSERT_TRUE(result.has_value()) << result.error().message;
    // Every third is let go, so that buffers are used again.
    if (i % 3 != 0) kept.push_back(*std::move(result));
  }
  int32_t i = 0;
  for (const ports::BatchResult& result : kept) {
    while (i % 3 == 0) ++i;
    const std::vector<int32_t> expected(size_t{16} * static_cast<size_t>(1 + i % 3), 2 * i);
    EXPECT_EQ(ints(result.results[0].outputs[0]), expected);
    ++i;
  }
}

TEST_F(OrtTest, AnOutputOfAnotherShapeThanDeclaredIsServed) {
  const auto runtime = load(testing::add_sub_model());
  auto instance = runtime->create_instance(batching());
  const std::vector<int32_t> values(32, 4);
  InferRequest request = add_request(values, values);
  request.items = 1;  // two rows come out all the same
  const std::array<const InferRequest*, 1> members = {&request};
  for (int i = 0; i < 2; ++i) {
    const auto result = (*instance)->run(members);
    ASSERT_TRUE(result.has_value()) << log_.last;
    EXPECT_EQ(result->results[0].outputs[0].shape, (Shape{2, 16}));
  }
}

TEST_F(OrtTest, AnOutputOfAnotherShapeIsServedAfterOthersHeld) {
  const auto runtime = load(testing::add_sub_model());
  auto instance = runtime->create_instance(batching());
  const std::vector<int32_t> values(32, 4);
  InferRequest request = add_request(values, values);
  const std::array<const InferRequest*, 1> members = {&request};
  ASSERT_TRUE((*instance)->run(members).has_value());
  request.items = 1;
  EXPECT_TRUE((*instance)->run(members).has_value()) << log_.last;
}

// Counts how often it is read: a run reads it twice, the log of its failure once.
class CountingClock final : public ports::Clock {
 public:
  Instant now() const override {
    ++reads;
    return {};
  }
  WallTime wall() const override { return {}; }
  mutable int reads = 0;
};

TEST_F(OrtTest, ARunThatFailsForItsValuesIsNotRunAgain) {
  CountingClock clock;
  auto opened = open_onnxruntime({getenv("BATON_ORT_LIBRARY")}, log_, clock);
  ASSERT_TRUE(opened.has_value());
  loader_ = std::move(*opened);
  testing::OnnxGraph graph;
  graph.weights("table", std::vector<int64_t>{4, 2}, std::vector<float>(8, 1));
  graph.node("Gather", {"table", "row"}, {"y"});
  graph.input("row", testing::kOnnxInt64, std::vector<int64_t>{-1});
  graph.output("y", testing::kOnnxFloat, std::vector<int64_t>{-1, 2});
  const auto runtime = load(graph.model());
  auto instance = runtime->create_instance(batching());
  int64_t row = 3;
  InferRequest request;
  request.items = 1;
  request.inputs.push_back({"row", DataType::kInt64, {1}, std::as_bytes(std::span(&row, 1))});
  const std::array<const InferRequest*, 1> members = {&request};
  ASSERT_TRUE((*instance)->run(members).has_value()) << log_.last;
  row = 9;
  clock.reads = 0;
  EXPECT_FALSE((*instance)->run(members).has_value());
  EXPECT_EQ(clock.reads, 3) << log_.last;
}

// Nice values of this process's threads of that name.
std::vector<int> nice_of(const std::string& name) {
  std::vector<int> found;
  for (const auto& entry : fs::directory_iterator("/proc/self/task")) {
    std::string comm;
    std::getline(std::ifstream(entry.path() / "comm") >> std::ws, comm);
    if (comm != name) continue;
    found.push_back(
        getpriority(PRIO_PROCESS, static_cast<id_t>(std::stoi(entry.path().filename()))));
  }
  return found;
}

TEST_F(OrtTest, PoolThreadsAreNotAsNiceAsTheirLoader) {
  const std::string path = (folder_ / "model.onnx").string();
  std::ofstream(path, std::ios::binary) << testing::add_sub_model();
  std::unique_ptr<ports::ModelRuntime> runtime;
  const auto self = static_cast<id_t>(syscall(SYS_gettid));
  const int own = getpriority(PRIO_PROCESS, self);
  std::thread loader([&] {
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 19);
    RuntimeOptions options;
    options.intra_op_threads = 3;
    auto loaded = loader_->load(path, options);
    if (loaded.has_value()) runtime = std::move(*loaded);
  });
  loader.join();
  ASSERT_NE(runtime, nullptr);
  EXPECT_EQ(nice_of("baton-ort"), std::vector<int>(2, own));
}

TEST_F(OrtTest, RequestsOfOtherShapesTakeTurns) {
  const auto runtime = load(testing::add_sub_model());
  auto instance = runtime->create_instance(batching());
  for (int32_t i = 0; i < 12; ++i) {
    // Larger ones than are copied, too.
    const std::vector<int32_t> values(size_t{16} * (i % 4 == 3 ? 2000 : 1), i);
    InferRequest request = add_request(values, values);
    if (i % 2 == 1) request.outputs.push_back({.name = "OUTPUT1"});
    const std::array<const InferRequest*, 1> members = {&request};
    const auto result = (*instance)->run(members);
    ASSERT_TRUE(result.has_value()) << result.error().message;
    const int32_t expected = i % 2 == 1 ? 0 : 2 * i;
    EXPECT_EQ(ints(result->results[0].outputs[0]), std::vector<int32_t>(values.size(), expected));
  }
}

TEST_F(OrtTest, StringsKeepEveryByte) {
  const std::vector<int64_t> dims = {-1, 1};
  testing::OnnxGraph graph;
  graph.node("Identity", {"s"}, {"t"});
  graph.input("s", testing::kOnnxString, dims).output("t", testing::kOnnxString, dims);
  const auto runtime = load(graph.model());
  auto instance = runtime->create_instance({});
  ASSERT_TRUE(instance.has_value());
  const std::string wire("\3\0\0\0a\0b\0\0\0\0", 11);
  InferRequest a;
  a.items = 2;
  a.inputs.push_back({"s", DataType::kBytes, {2, 1}, std::as_bytes(std::span(wire))});
  const InferRequest b = a;
  const std::array<const InferRequest*, 2> members = {&a, &b};
  const auto batch = (*instance)->run(members);
  ASSERT_TRUE(batch.has_value()) << batch.error().message;
  for (const InferResult& result : batch->results) {
    const Tensor& out = result.outputs[0];
    EXPECT_EQ(as_chars(out.data), wire);
  }
}

TEST_F(OrtTest, ResultsOutliveTheInstance) {
  const auto runtime = load(testing::add_sub_model());
  const std::vector<int32_t> ones(16, 1);
  InferResult kept;
  {
    auto instance = runtime->create_instance({});
    InferRequest request = add_request(ones, ones);
    const std::array<const InferRequest*, 1> members = {&request};
    kept = (*instance)->run(members)->results[0];
  }
  EXPECT_EQ(ints(kept.outputs[0]), std::vector<int32_t>(16, 2));
}

TEST_F(OrtTest, AWrongShapeIsAFailureThatTheClientIsToldAndTheLogIsNot) {
  const auto runtime = load(testing::add_sub_model());
  ModelConfig config;
  config.name = "m";
  auto instance = runtime->create_instance(config);
  const std::vector<int32_t> values(16, 1);
  InferRequest request = add_request(values, values);
  request.inputs[0].shape = {2, 8};
  const std::array<const InferRequest*, 1> members = {&request};
  const auto batch = (*instance)->run(members);
  ASSERT_FALSE(batch.has_value());
  EXPECT_TRUE(batch.error().message.starts_with("model \"m\" failed to run this request: "))
      << batch.error().message;
  EXPECT_TRUE(log_.last.starts_with("model m: a run failed ")) << log_.last;
  EXPECT_EQ(log_.last.find("17"), std::string::npos) << log_.last;
  EXPECT_NE(batch.error().message.find("INPUT0"), std::string::npos);
}

TEST_F(OrtTest, ATerminateThatComesTooLateAffectsNoLaterRun) {
  const auto runtime = load(testing::add_sub_model());
  auto instance = runtime->create_instance({});
  const std::vector<int32_t> ones(16, 1);
  InferRequest request = add_request(ones, ones);
  const std::array<const InferRequest*, 1> members = {&request};
  // From another thread all the time: it lands before, within and behind runs.
  std::atomic<bool> stop{false};
  std::thread terminator([&] {
    while (!stop) (*instance)->terminate();
  });
  int ended = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto result = (*instance)->run(members);
    if (!result.has_value()) {
      ++ended;
      ASSERT_TRUE(result.error().terminated) << result.error().message;
    }
  }
  stop = true;
  terminator.join();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE((*instance)->run(members).has_value());
  EXPECT_LE(ended, 2000);
}

TEST_F(OrtTest, AFileThatIsNoModelIsAClearError) {
  const std::string path = (folder_ / "model.onnx").string();
  std::ofstream(path) << "not a model";
  const auto loaded = loader_->load(path, {});
  ASSERT_FALSE(loaded.has_value());
  EXPECT_NE(loaded.error().message.find("does not load"), std::string::npos);
  EXPECT_EQ(loaded.error().message.find(path), std::string::npos);  // a client may see it
}

TEST(OpenOnnxRuntime, SaysWhichFileIsNotUsable) {
  NoLog log;
  ports::testing::ManualClock clock;
  const auto opened = open_onnxruntime({"/no/such/libonnxruntime.so"}, log, clock);
  ASSERT_FALSE(opened.has_value());
  EXPECT_NE(opened.error().message.find("/no/such/libonnxruntime.so"), std::string::npos);
}

}  // namespace
}  // namespace baton::adapters::onnx
