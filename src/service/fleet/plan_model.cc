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
                     protocol::model_config::Unsupported unsupported) {
  ModelPlan plan;
  for (const std::string& ignored : found.ignored) plan.remarks.push_back("passed over " + ignored);
  if (!found.problem.empty()) return failed(std::move(plan), found.problem);
  std::optional<ModelConfig> config;
  if (found.config_text) {
    auto parsed = protocol::model_config::parse_model_config(*found.config_text, unsupported);
    if (!parsed.has_value()) return failed(std::move(plan), parsed.error().message);
    for (const std::string& field : parsed->ignored) {
      plan.remarks.push_back("config.pbtxt: ignored, not honoured: " + field);
    }
    config = std::move(parsed->config);
    if (!config->name.empty() && config->name != found.name) {
      return failed(std::move(plan), "config.pbtxt: name is \"" + config->name +
                                         "\"; expected the folder's, \"" + found.name + "\"");
    }
  }
  const VersionPolicy policy = config ? config->version_policy : VersionPolicy();
  add_missing_versions(policy, found.versions, plan.remarks);
  for (int64_t version : chosen_versions(policy, found.versions)) {
    plan.requests.push_back({found, version, config});
  }
  if (plan.requests.empty()) {
    return failed(std::move(plan), "version_policy picks no version that exists");
  }
  return plan;
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
