#include "service/fleet/plan_model.h"

#include <algorithm>
#include <utility>

namespace baton::service {
namespace {

ModelPlan failed(ModelPlan plan, std::string problem) {
  plan.problem = std::move(problem);
  return plan;
}

void add_missing_versions(const VersionPolicy& policy, const std::vector<int64_t>& found,
                          std::vector<std::string>& remarks) {
  if (policy.kind != VersionPolicy::Kind::kSpecific) return;
  for (int64_t version : policy.specific) {
    if (std::ranges::find(found, version) != found.end()) continue;
    remarks.push_back("config.pbtxt: version_policy: version " + std::to_string(version) +
                      " does not exist");
  }
}

// Nothing: it is derived from the file.
Result<std::optional<ModelConfig>, LoadFailure> read_config(
    const ports::FoundModel& found, protocol::model_config::Unsupported unsupported,
    const PlanOverride& asked, std::vector<std::string>& remarks) {
  if (!asked.config && !found.config_text) return std::optional<ModelConfig>();
  auto parsed = asked.config
                    ? protocol::model_config::parse_model_config_json(*asked.config, unsupported)
                    : protocol::model_config::parse_model_config(*found.config_text, unsupported);
  if (!parsed.has_value()) return fail(std::move(parsed).error());
  const std::string place = asked.config ? "config" : "config.pbtxt";
  for (const std::string& field : parsed->ignored) {
    remarks.push_back(place + ": ignored, not honoured: " + field);
  }
  if (!parsed->config.name.empty() && parsed->config.name != found.name) {
    return fail(LoadFailure{place + ": name is \"" + parsed->config.name +
                            "\"; expected the folder's, \"" + found.name + "\""});
  }
  return std::optional<ModelConfig>(std::move(parsed->config));
}

}  // namespace

std::vector<int64_t> chosen_versions(const VersionPolicy& policy,
                                     const std::vector<int64_t>& found) {
  std::vector<int64_t> chosen;
  switch (policy.kind) {
    case VersionPolicy::Kind::kAll:
      return found;
    case VersionPolicy::Kind::kLatest: {
      const size_t count = std::min<size_t>(policy.latest_count, found.size());
      chosen.assign(found.end() - static_cast<std::ptrdiff_t>(count), found.end());
      return chosen;
    }
    case VersionPolicy::Kind::kSpecific:
      break;
  }
  for (int64_t version : found) {
    if (std::ranges::find(policy.specific, version) != policy.specific.end()) {
      chosen.push_back(version);
    }
  }
  return chosen;
}

ModelPlan plan_model(const ports::FoundModel& found,
                     protocol::model_config::Unsupported unsupported, const PlanOverride& asked) {
  ModelPlan plan;
  for (const std::string& ignored : found.ignored) plan.remarks.push_back("passed over " + ignored);
  if (!found.problem.empty()) return failed(std::move(plan), found.problem);
  auto config = read_config(found, unsupported, asked, plan.remarks);
  if (!config.has_value()) return failed(std::move(plan), std::move(config).error().message);
  if (asked.version) {
    if (std::ranges::find(found.versions, *asked.version) == found.versions.end()) {
      return failed(std::move(plan),
                    "it has no version " + std::to_string(*asked.version) + " in the repository");
    }
    plan.requests.push_back({found, *asked.version, std::move(*config)});
    return plan;
  }
  const VersionPolicy policy = *config ? (*config)->version_policy : VersionPolicy();
  add_missing_versions(policy, found.versions, plan.remarks);
  for (int64_t version : chosen_versions(policy, found.versions)) {
    plan.requests.push_back({found, version, *config});
  }
  if (plan.requests.empty()) {
    return failed(std::move(plan), "version_policy picks no version that exists");
  }
  return plan;
}

VersionChange compare_configs(const std::optional<ModelConfig>& served,
                              const std::optional<ModelConfig>& asked) {
  if (!served || !asked) return served == asked ? VersionChange::kNone : VersionChange::kReload;
  ModelConfig same = *served;
  same.version_policy = asked->version_policy;
  if (same == *asked) return VersionChange::kNone;
  same.instance_count = asked->instance_count;
  return same == *asked ? VersionChange::kInstances : VersionChange::kReload;
}

std::vector<std::string> missing_models(const std::set<std::string>& required,
                                        const std::vector<ports::FoundModel>& found) {
  std::vector<std::string> missing;
  for (const std::string& name : required) {
    if (std::ranges::find(found, name, &ports::FoundModel::name) == found.end()) {
      missing.push_back(name);
    }
  }
  return missing;
}

}  // namespace baton::service
