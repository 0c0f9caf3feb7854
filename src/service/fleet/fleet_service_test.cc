#include "service/fleet/fleet_service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "ports/testing/fake_runtime.h"
#include "ports/testing/scripted_engine.h"
#include "ports/testing/virtual_loop.h"

namespace baton::service {
namespace {

using ports::testing::FakeRuntimeInstance;
using ports::testing::ScriptedEngine;
using ports::testing::VirtualLoop;

class MemoryRepository final : public ports::ModelRepository {
 public:
  Result<std::vector<ports::FoundModel>, LoadFailure> scan() override { return models; }
  Result<std::string, LoadFailure> model_file(const ports::FoundModel& model, int64_t version,
                                              const std::string&) override {
    return model.name + "/" + std::to_string(version);
  }
  Result<std::string, LoadFailure> read_file(const ports::FoundModel&, const std::string& name,
                                             size_t) override {
    if (const auto found = files.find(name); found != files.end()) return found->second;
    return fail(LoadFailure{name + " does not exist"});
  }
  std::string fingerprint(const std::string& path) override { return path; }
  std::vector<ports::FoundModel> models;
  std::map<std::string, std::string> files;  // of every model
};

// Echo models: one input, and an output of the name that the fake instance gives it.
class EchoRuntime final : public ports::ModelRuntime {
 public:
  explicit EchoRuntime(Shape dims) {
    signature_.inputs = {{.name = "IN", .type = DataType::kFp32, .dims = dims}};
    signature_.outputs = {{.name = "OUT0", .type = DataType::kFp32, .dims = dims}};
  }
  [[nodiscard]] const ModelSignature& signature() const override { return signature_; }
  Result<std::unique_ptr<ports::RuntimeInstance>, LoadFailure> create_instance(
      const ModelConfig&) override {
    return std::make_unique<FakeRuntimeInstance>();
  }

 private:
  ModelSignature signature_;
};

class EchoLoader final : public ports::RuntimeLoader {
 public:
  Result<std::unique_ptr<ports::ModelRuntime>, LoadFailure> load(const std::string& file,
                                                                 const RuntimeOptions&) override {
    if (file.starts_with("broken")) return fail(LoadFailure{"it is broken"});
    return std::make_unique<EchoRuntime>(Shape{1, 2});
  }
  [[nodiscard]] std::string version() const override { return "echo-1"; }
};

class MemoryStore final : public ports::StateStore {
 public:
  Result<std::optional<LatencyCurve>, ports::StoreFailure> load_curve(
      const ports::CurveKey&) override {
    if (broken) return fail(ports::StoreFailure{"it is torn"});
    return std::optional<LatencyCurve>();
  }
  Result<void, ports::StoreFailure> save_curve(const ports::CurveKey& key,
                                               const LatencyCurve&) override {
    fingerprints[key.model] = key.fingerprint;
    return {};
  }
  std::map<std::string, std::string> fingerprints;
  bool broken = false;
};

// Requested before the run of that number; a run is never interrupted.
class StopBeforeRun final : public ports::Cancellation {
 public:
  [[nodiscard]] bool requested() const override { return runs >= last; }
  void run(FunctionRef<void()> work, FunctionRef<void()>) override {
    if (requested()) return;
    ++runs;
    work();
  }
  size_t runs = 0;
  size_t last = SIZE_MAX;
};

class StoredJobs final : public ports::JobRunner {
 public:
  void run(Job job) override { jobs.push_back(std::move(job)); }
  void run_one() {
    auto job = std::move(jobs.front());
    jobs.pop_front();
    job(stop);
  }
  std::deque<Job> jobs;
  StopBeforeRun stop;
};

class ScriptedEngines final : public ports::EngineFactory {
 public:
  std::shared_ptr<ports::EnginePort> make(ports::LoadedVersion) override {
    return std::make_shared<ScriptedEngine>();
  }
};

class QuietLog final : public ports::Log {
 public:
  void log(ports::LogLevel, std::string message) override { lines.push_back(std::move(message)); }
  std::vector<std::string> lines;
};

class FleetTest : public testing::Test {
 protected:
  void add(std::string name, std::vector<int64_t> versions,
           std::optional<std::string> config = std::nullopt) {
    repository_.models.push_back({.name = std::move(name),
                                  .folder = "",
                                  .config_text = std::move(config),
                                  .versions = std::move(versions),
                                  .ignored = {},
                                  .problem = ""});
  }
  void start(FleetOptions options = {}) {
    fleet_ = std::make_unique<FleetService>(
        FleetPorts{
            {repository_, loader_, loop_, &store_}, engines_, jobs_, loop_, log_, telemetry_},
        std::move(options));
    ASSERT_TRUE(fleet_->start().has_value());
  }
  void finish_jobs() {
    while (!jobs_.jobs.empty()) jobs_.run_one();
    loop_.run_for(Duration());
  }
  const ports::ModelEntry& entry(const std::string& name) {
    snapshot_ = fleet_->snapshot();
    return *snapshot_->models.at(name);
  }

  VirtualLoop loop_;
  MemoryRepository repository_;
  EchoLoader loader_;
  StoredJobs jobs_;
  MemoryStore store_;
  ScriptedEngines engines_;
  QuietLog log_;
  Telemetry telemetry_{1};
  std::unique_ptr<FleetService> fleet_;
  std::shared_ptr<const ports::Directory> snapshot_;
};

TEST_F(FleetTest, AVersionGoesFromLoadingToReady) {
  add("m", {1, 3});
  start();
  EXPECT_EQ(entry("m").versions.at(3)->state, ModelState::kLoading);
  EXPECT_EQ(entry("m").versions.size(), 1U);  // latest alone by default
  const uint64_t before = fleet_->generation();
  finish_jobs();
  EXPECT_EQ(entry("m").versions.at(3)->state, ModelState::kReady);
  EXPECT_TRUE(entry("m").has_been_ready);
  EXPECT_NE(entry("m").versions.at(3)->engine, nullptr);
  EXPECT_GT(fleet_->generation(), before);
  EXPECT_EQ(fleet_->loading(), 0U);
}

TEST_F(FleetTest, AWrongModelFailsAlone) {  // kserve#1791
  add("broken", {1});
  add("fine", {1});
  add("nameless", {1}, "name: 'other'");
  start();
  finish_jobs();
  EXPECT_EQ(entry("broken").versions.at(1)->state, ModelState::kFailed);
  EXPECT_EQ(entry("broken").versions.at(1)->reason, "it is broken");
  EXPECT_EQ(entry("fine").versions.at(1)->state, ModelState::kReady);
  EXPECT_NE(entry("nameless").reason.find("name is \"other\""), std::string::npos);
}

TEST_F(FleetTest, ARequiredModelThatIsNotFoundIsAReason) {
  add("m", {1});
  FleetOptions options;
  options.required = {"ghost"};
  start(std::move(options));
  EXPECT_TRUE(entry("ghost").required);
  EXPECT_FALSE(entry("ghost").reason.empty());
  EXPECT_FALSE(entry("m").required);
}

TEST_F(FleetTest, AFixedFirstDimensionWithBatchingFailsWithTheTensor) {  // U142
  add("m", {1}, "max_batch_size: 8");
  start();
  finish_jobs();
  EXPECT_NE(entry("m").versions.at(1)->reason.find("\"IN\""), std::string::npos);
}

TEST_F(FleetTest, ACurveIsOfOneSetOfOptions) {
  const std::map<std::string, const char*> configs = {
      {"plain", "max_batch_size: 0"},
      {"arena", "parameters { key: 'enable_mem_arena' value { string_value: '0' } }"},
      {"pattern", "parameters { key: 'enable_mem_pattern' value { string_value: '0' } }"},
      {"threads", "parameters { key: 'intra_op_thread_count' value { string_value: '2' } }"},
      {"graph", "optimization { graph { level: 1 } }"},
      {"instances", "instance_group { count: 2 }"},
  };
  for (const auto& [name, config] : configs) add(name, {1}, config);
  start();
  finish_jobs();
  std::set<std::string> options;
  for (const auto& [name, fingerprint] : store_.fingerprints) {
    EXPECT_TRUE(fingerprint.starts_with(name + "/1:cpu/")) << fingerprint;
    options.insert(fingerprint.substr(fingerprint.find(':')));
  }
  EXPECT_EQ(options.size(), configs.size());
}

TEST_F(FleetTest, ACurveThatCannotBeReadCostsAMeasurementAndARemark) {
  store_.broken = true;
  add("m", {1});
  start();
  finish_jobs();
  EXPECT_EQ(entry("m").versions.at(1)->state, ModelState::kReady);
  EXPECT_TRUE(std::ranges::any_of(log_.lines, [](const std::string& line) {
    return line.ends_with("its curve is measured again: it is torn");
  }));
}

TEST_F(FleetTest, LoadingIsStoppedBetweenItsStepsAndRuns) {
  add("m", {1});
  start();
  finish_jobs();
  const size_t runs = jobs_.stop.runs;
  ASSERT_GT(runs, 3U);
  for (size_t last = 0; last < runs; ++last) {
    jobs_.stop.runs = 0;
    jobs_.stop.last = last;
    store_.fingerprints.clear();
    start();
    finish_jobs();
    EXPECT_EQ(entry("m").versions.at(1)->state, ModelState::kFailed);
    EXPECT_EQ(entry("m").versions.at(1)->reason, kLoadingStopped);
    EXPECT_EQ(jobs_.stop.runs, last);
    EXPECT_TRUE(store_.fingerprints.empty()) << "half a curve was kept";
  }
}

TEST_F(FleetTest, LabelsAreReadWithTheModel) {
  constexpr auto kConfig =
      "output [ { name: \"OUT0\" data_type: TYPE_FP32 dims: [ 1, 2 ] label_filename: \"names\" } ]";
  repository_.files["names"] = "cat\r\n\nd\xC3\xB6g\n";
  add("m", {1}, kConfig);
  start();
  finish_jobs();
  const auto& output = entry("m").versions.at(1)->config.outputs[0];
  ASSERT_NE(output.labels, nullptr) << entry("m").versions.at(1)->reason;
  EXPECT_EQ(output.labels->lines, (std::vector<std::string>{"cat", "", "d\xC3\xB6g"}));
  EXPECT_EQ(output.labels->longest, 4U);
  EXPECT_NE(entry("m").versions.at(1)->config.json.find("\"label_filename\":\"names\""),
            std::string::npos);
}

TEST_F(FleetTest, AModelWhoseLabelsCannotBeReadFails) {
  constexpr auto kConfig =
      "output [ { name: \"OUT0\" data_type: TYPE_FP32 dims: [ 1, 2 ] label_filename: \"names\" } ]";
  add("m", {1}, kConfig);
  start();
  finish_jobs();
  EXPECT_EQ(entry("m").versions.at(1)->reason,
            "output \"OUT0\": label_filename: names does not exist");
  repository_.files["names"] = "\xFF";
  start();
  finish_jobs();
  EXPECT_EQ(entry("m").versions.at(1)->reason,
            "output \"OUT0\": label_filename: the file is not UTF-8");
}

TEST_F(FleetTest, PublishedDirectoriesDoNotChange) {
  add("m", {1});
  start();
  const auto early = fleet_->snapshot();
  finish_jobs();
  EXPECT_EQ(early->models.at("m")->versions.at(1)->state, ModelState::kLoading);
}

}  // namespace
}  // namespace baton::service
