#include "service/fleet/fleet_service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "ports/testing/fake_runtime.h"
#include "ports/testing/manual_jobs.h"
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
  Result<std::optional<ports::FoundModel>, LoadFailure> find(const std::string& name) override {
    const auto found = std::ranges::find(models, name, &ports::FoundModel::name);
    if (found == models.end()) return std::optional<ports::FoundModel>();
    return std::optional<ports::FoundModel>(*found);
  }
  Result<std::vector<std::string>, LoadFailure> names() override {
    std::vector<std::string> out;
    for (const auto& model : models) out.push_back(model.name);
    return out;
  }
  Result<ports::FoundModel, LoadFailure> stage(
      const std::string& name, const std::map<std::string, std::string>& given) override {
    ports::FoundModel model;
    model.name = name;
    for (const auto& [file, content] : given) model.versions.push_back(file.front() - '0');
    model.keep = kept;
    return model;
  }
  std::string fingerprint(const std::string& path) override { return path; }
  std::vector<ports::FoundModel> models;
  std::map<std::string, std::string> files;  // of every model
  std::shared_ptr<int> kept = std::make_shared<int>();
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
    made.push_back(std::make_shared<ScriptedEngine>());
    return made.back();
  }
  std::move_only_function<void()> withdraw(
      const std::shared_ptr<ports::EnginePort>& engine) override {
    return [this, engine] { freed.push_back(engine); };
  }
  ports::InstanceControl instances_of(const std::shared_ptr<ports::EnginePort>&) override {
    ports::InstanceControl control;
    control.runtime = std::make_shared<EchoRuntime>(Shape{1, 2});
    control.resize = [this](std::vector<std::unique_ptr<ports::RuntimeInstance>> more,
                            uint32_t count) { resizes.emplace_back(more.size(), count); };
    return control;
  }
  std::vector<std::pair<size_t, uint32_t>> resizes;  // instances that came, and how many stay
  std::vector<std::shared_ptr<ScriptedEngine>> made;
  std::vector<std::shared_ptr<ports::EnginePort>> freed;
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
    ports::FoundModel model;
    model.name = std::move(name);
    model.config_text = std::move(config);
    model.versions = std::move(versions);
    model.stamp = 1;
    model.unchanged = Duration::s(60);
    repository_.models.push_back(std::move(model));
  }
  void start(FleetOptions options = {}) {
    fleet_ = std::make_unique<FleetService>(FleetPorts{{repository_, loader_, loop_, &store_},
                                                       engines_,
                                                       jobs_,
                                                       chores_,
                                                       loop_,
                                                       loop_,
                                                       log_,
                                                       telemetry_},
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
  ports::testing::ManualJobs chores_;
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

class CommandTest : public FleetTest {
 protected:
  void start_explicit(std::vector<std::string> startup = {}) {
    FleetOptions options;
    options.repository.control = ControlMode::kExplicit;
    options.repository.startup_models = std::move(startup);
    start(std::move(options));
    finish_jobs();
  }
  ports::RepositoryControl::Done told() {
    return [this](Result<void, Refusal> result) { results_.push_back(std::move(result)); };
  }
  // Until nothing is left to do.
  void finish_all() {
    for (int i = 0; i < 10; ++i) {
      loop_.run_for(kLookAtDraining);
      chores_.run_all();
      finish_jobs();
    }
  }
  Result<void, Refusal> load(ports::LoadCommand command) {
    fleet_->load(std::move(command), loop_, told());
    finish_all();
    return results_.back();
  }
  Result<void, Refusal> unload(ports::UnloadCommand command) {
    fleet_->unload(std::move(command), loop_, told());
    finish_all();
    return results_.back();
  }
  static ports::LoadCommand of(std::string model) { return {std::move(model), {}, {}, {}}; }
  void touch(size_t model) {
    ports::FoundModel& found = repository_.models[model];
    for (int64_t version : found.versions) ++found.version_stamps[version];
    ++found.stamp;
  }
  ports::EngineCall call() { return {std::make_shared<const InferRequest>(), &loop_}; }
  std::vector<Result<void, Refusal>> results_;
};

TEST_F(CommandTest, OnlyExplicitControlTakesCommands) {
  add("m", {1});
  start();
  finish_jobs();
  const auto refused = load(of("m"));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason, EndReason::kNotReady);
  EXPECT_FALSE(unload({"m", {}}).has_value());
  EXPECT_EQ(entry("m").versions.at(1)->state, ModelState::kReady);
}

TEST_F(CommandTest, ALoadIsDoneWhenItsVersionsServe) {
  add("m", {1});
  start_explicit();
  EXPECT_TRUE(entry("m").versions.empty());
  EXPECT_FALSE(entry("m").required);
  fleet_->load(of("m"), loop_, told());
  loop_.run_for(Duration());
  chores_.run_all();
  loop_.run_for(Duration());
  EXPECT_EQ(entry("m").versions.at(1)->state, ModelState::kLoading);
  EXPECT_TRUE(results_.empty());
  finish_all();
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_TRUE(results_[0].has_value());
  EXPECT_EQ(entry("m").versions.at(1)->state, ModelState::kReady);
}

TEST_F(CommandTest, TheOldVersionServesUntilItsSuccessorIsReadyAndThenEndsItsCalls) {
  add("m", {1});
  start_explicit({"m"});
  struct : ports::EngineEvents {
    void on_end(ports::CallId, ports::EngineEnd) override {}
  } events;
  engines_.made[0]->start(call(), events);
  touch(0);
  fleet_->load(of("m"), loop_, told());
  loop_.run_for(Duration());
  chores_.run_all();
  loop_.run_for(Duration());
  ASSERT_EQ(jobs_.jobs.size(), 1U);
  EXPECT_EQ(entry("m").versions.at(1)->state, ModelState::kReady);
  EXPECT_EQ(entry("m").versions.at(1)->engine, engines_.made[0]);
  finish_all();
  EXPECT_TRUE(results_.back().has_value());
  EXPECT_EQ(entry("m").versions.at(1)->engine, engines_.made[1]);
  EXPECT_TRUE(engines_.freed.empty()) << "an engine with a call was freed";
  engines_.made[0]->end_first({});
  finish_all();
  ASSERT_EQ(engines_.freed.size(), 1U);
  EXPECT_EQ(engines_.freed[0], engines_.made[0]);
}

TEST_F(CommandTest, AFailedReloadLeavesTheOldServingAndIsRepeated) {  // server#3802
  add("m", {1}, "max_batch_size: 0");
  start_explicit({"m"});
  repository_.models[0].config_text = "max_batch_size: 8";  // its first dimension is 1
  for (int i = 0; i < 2; ++i) {
    const auto failed = load(of("m"));
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().reason, EndReason::kInvalid);
    EXPECT_EQ(entry("m").versions.at(1)->state, ModelState::kReady);
    EXPECT_EQ(entry("m").versions.at(1)->engine, engines_.made[0]);
    EXPECT_NE(entry("m").versions.at(1)->reason, "");
  }
  repository_.models[0].config_text = "max_batch_size: 0";
  EXPECT_TRUE(load(of("m")).has_value());
  EXPECT_EQ(engines_.made.size(), 1U) << "what did not change was loaded again";
}

TEST_F(CommandTest, AnotherNumberOfInstancesIsAppliedInPlace) {
  add("m", {1}, "instance_group { count: 1 }");
  start_explicit({"m"});
  for (uint32_t count : {3U, 1U}) {
    repository_.models[0].config_text = "instance_group { count: " + std::to_string(count) + " }";
    EXPECT_TRUE(load(of("m")).has_value());
    EXPECT_EQ(entry("m").versions.at(1)->config.instance_count, count);
    EXPECT_NE(entry("m").versions.at(1)->config.json.find("\"count\":" + std::to_string(count)),
              std::string::npos);
  }
  EXPECT_EQ(engines_.resizes, (std::vector<std::pair<size_t, uint32_t>>{{2, 3}, {0, 1}}));
  EXPECT_EQ(engines_.made.size(), 1U) << "it was loaded again";
  EXPECT_TRUE(load(of("m")).has_value());
  EXPECT_EQ(engines_.resizes.size(), 2U) << "what did not change was applied again";
}

TEST_F(CommandTest, NothingIsKeptOfAModelThatDoesNotExist) {
  start_explicit();
  for (int i = 0; i < 3; ++i) {
    const auto failed = load(of("ghost" + std::to_string(i)));
    EXPECT_EQ(failed.error().reason, EndReason::kInvalid);
  }
  EXPECT_TRUE(fleet_->snapshot()->models.empty());
  EXPECT_FALSE(unload({"ghost", {}}).has_value());
}

TEST_F(CommandTest, CommandsOfOneModelAreCarriedOutInOrder) {
  add("m", {1});
  start_explicit();
  fleet_->load(of("m"), loop_, told());
  fleet_->unload({"m", {}}, loop_, told());
  fleet_->load(of("m"), loop_, told());
  finish_all();
  ASSERT_EQ(results_.size(), 3U);
  EXPECT_TRUE(results_[0].has_value() && results_[1].has_value() && results_[2].has_value());
  EXPECT_EQ(entry("m").versions.at(1)->state, ModelState::kReady);
  EXPECT_EQ(engines_.made.size(), 2U);
}

TEST_F(CommandTest, TooManyCommandsAreRefused) {
  add("m", {1});
  start_explicit();
  const size_t most = kMostWaitingChanges + 1;  // one runs
  for (size_t i = 0; i <= most; ++i) fleet_->load(of("m"), loop_, told());
  loop_.run_for(Duration());
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_EQ(results_[0].error().reason, EndReason::kOverloaded);
  finish_all();
}

TEST_F(CommandTest, TheFilesOfCommandsThatWaitAreBounded) {
  start_explicit();
  const std::string large(kMostCommandBytes / 4, 'x');
  for (int i = 0; i < 5; ++i) {
    fleet_->load({"m" + std::to_string(i), {}, "{}", {{"1/model.onnx", large}}}, loop_, told());
  }
  loop_.run_for(Duration());
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_EQ(results_[0].error().reason, EndReason::kOverloaded);
  finish_all();
  EXPECT_EQ(results_.size(), 5U);
  EXPECT_TRUE(load({"m9", {}, "{}", {{"1/model.onnx", large}}}).has_value());
}

TEST_F(CommandTest, ShutdownTellsThoseWhoWait) {
  add("m", {1});
  start_explicit();
  fleet_->load(of("m"), loop_, told());
  fleet_->unload({"m", {}}, loop_, told());
  loop_.run_for(Duration());
  fleet_->begin_lame_duck();
  loop_.run_for(Duration());
  ASSERT_EQ(results_.size(), 2U);
  for (const auto& result : results_) EXPECT_EQ(result.error().reason, EndReason::kShuttingDown);
  EXPECT_EQ(load(of("m")).error().reason, EndReason::kShuttingDown);
}

TEST_F(CommandTest, AClientsFilesAreKeptOnlyWhileTheyLoad) {
  start_explicit();
  EXPECT_TRUE(load({"m", {}, "{}", {{"4/model.onnx", "x"}}}).has_value());
  EXPECT_EQ(entry("m").versions.at(4)->state, ModelState::kReady);
  EXPECT_EQ(repository_.kept.use_count(), 1);
}

class PollTest : public CommandTest {
 protected:
  void start_polling() {
    FleetOptions options;
    options.repository.control = ControlMode::kPoll;
    start(std::move(options));
    finish_all();
  }
  void pass(Duration time) {
    for (Duration done; done < time; done += Duration::ms(500)) {
      loop_.run_for(Duration::ms(500));
      chores_.run_all();
      finish_jobs();
    }
  }
};

TEST_F(PollTest, FoldersAreFollowed) {
  add("m", {1});
  start_polling();
  EXPECT_EQ(entry("m").versions.at(1)->state, ModelState::kReady);
  add("n", {1});
  touch(0);
  pass(Duration::s(20));
  EXPECT_EQ(entry("n").versions.at(1)->state, ModelState::kReady);
  EXPECT_FALSE(entry("n").required);
  EXPECT_EQ(entry("m").versions.at(1)->engine, engines_.made[1]);
  repository_.models.erase(repository_.models.begin());
  pass(Duration::s(20));
  EXPECT_FALSE(fleet_->snapshot()->models.contains("m"));
  EXPECT_EQ(engines_.freed.size(), 2U);
}

TEST_F(PollTest, WhatFailsLaterIsTriedAgainWhenItChangesAndLeavesReadinessAlone) {
  add("m", {1});
  start_polling();
  EXPECT_TRUE(entry("m").started);
  repository_.models[0].config_text = "max_batch_size: [";
  touch(0);
  pass(Duration::s(40));
  EXPECT_NE(entry("m").reason, "");
  EXPECT_TRUE(entry("m").started);
  EXPECT_EQ(entry("m").versions.at(1)->state, ModelState::kReady);
  const size_t lines = log_.lines.size();
  pass(Duration::s(60));
  EXPECT_EQ(log_.lines.size(), lines) << "an unchanged folder was tried again";
  repository_.models[0].config_text.reset();
  touch(0);
  pass(Duration::s(40));
  EXPECT_EQ(entry("m").reason, "");
}

}  // namespace
}  // namespace baton::service
