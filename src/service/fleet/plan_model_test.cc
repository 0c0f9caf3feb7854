#include "service/fleet/plan_model.h"

#include <gtest/gtest.h>

namespace baton::service {
namespace {

using protocol::model_config::Unsupported;

ports::FoundModel found(std::vector<int64_t> versions,
                        std::optional<std::string> config = std::nullopt) {
  return {.name = "m",
          .folder = "",
          .config_text = std::move(config),
          .versions = std::move(versions),
          .ignored = {},
          .problem = ""};
}

std::vector<int64_t> versions_of(const ModelPlan& plan) {
  std::vector<int64_t> versions;
  for (const LoadRequest& request : plan.requests) versions.push_back(request.version);
  return versions;
}

TEST(PlanModel, LoadsTheLatestVersionByDefault) {
  const ModelPlan plan = plan_model(found({1, 3}), Unsupported::kRefuse);
  EXPECT_EQ(plan.problem, "");
  EXPECT_EQ(versions_of(plan), std::vector<int64_t>{3});
  EXPECT_FALSE(plan.requests[0].config.has_value());
}

TEST(PlanModel, AnotherNameThanTheFoldersIsAProblem) {
  const ModelPlan plan = plan_model(found({1}, "name: 'other'"), Unsupported::kRefuse);
  EXPECT_NE(plan.problem.find("name is \"other\""), std::string::npos);
  EXPECT_TRUE(plan.requests.empty());
  EXPECT_EQ(plan_model(found({1}, "name: 'm'"), Unsupported::kRefuse).problem, "");
}

TEST(PlanModel, ASpecificVersionThatDoesNotExistIsSaid) {
  const char* config = "version_policy { specific { versions: [ 2, 7 ] } }";
  const ModelPlan some = plan_model(found({1, 2}, config), Unsupported::kRefuse);
  EXPECT_EQ(versions_of(some), std::vector<int64_t>{2});
  ASSERT_EQ(some.remarks.size(), 1U);
  EXPECT_NE(some.remarks[0].find("version 7 does not exist"), std::string::npos);
  const ModelPlan none = plan_model(found({1}, config), Unsupported::kRefuse);
  EXPECT_NE(none.problem.find("no version"), std::string::npos);
  EXPECT_EQ(none.remarks.size(), 2U);
}

TEST(PlanModel, WhatIsPassedOverAndIgnoredIsSaid) {
  ports::FoundModel model = found({1}, "response_cache { enable: true }");
  model.ignored = {"01: a leading zero"};
  const ModelPlan warned = plan_model(model, Unsupported::kWarn);
  EXPECT_EQ(warned.problem, "");
  EXPECT_EQ(warned.remarks.size(), 2U);
  const ModelPlan refused = plan_model(model, Unsupported::kRefuse);
  EXPECT_NE(refused.problem.find("response_cache"), std::string::npos);
  EXPECT_EQ(refused.remarks.size(), 1U);
}

TEST(PlanModel, TheRepositorysProblemIsTheModels) {
  ports::FoundModel model = found({1});
  model.problem = "it stands in two repositories";
  EXPECT_EQ(plan_model(model, Unsupported::kRefuse).problem, model.problem);
}

TEST(MissingModels, AreTheRequiredOnesThatWereNotFound) {
  EXPECT_EQ(missing_models({"ghost", "m"}, {found({1})}), std::vector<std::string>{"ghost"});
}

TEST(ChosenVersions, FollowThePolicy) {
  VersionPolicy policy;
  policy.latest_count = 2;
  EXPECT_EQ(chosen_versions(policy, {1, 2, 9}), (std::vector<int64_t>{2, 9}));
  policy.kind = VersionPolicy::Kind::kAll;
  EXPECT_EQ(chosen_versions(policy, {1, 2}), (std::vector<int64_t>{1, 2}));
  policy.kind = VersionPolicy::Kind::kSpecific;
  policy.specific = {2, 7};
  EXPECT_EQ(chosen_versions(policy, {1, 2}), (std::vector<int64_t>{2}));
}

}  // namespace
}  // namespace baton::service
