#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ports/model_repository.h"
#include "protocol/model_config/model_config.h"
#include "service/fleet/load_version.h"

namespace baton::service {

// What is to be loaded of a model that was found.
struct ModelPlan {
  std::string problem;                // not empty: why the model as a whole fails; no requests then
  std::vector<LoadRequest> requests;  // one a version, ascending
  std::vector<std::string> remarks;   // what is passed over or ignored, a sentence each
};

// What a client's command puts in the place of what the folder says.
struct PlanOverride {
  std::optional<int64_t> version;     // that one alone
  std::optional<std::string> config;  // JSON
};

// Reads the configuration and chooses versions. Pure: serving and `baton check` ask the same.
[[nodiscard]] ModelPlan plan_model(const ports::FoundModel& found,
                                   protocol::model_config::Unsupported unsupported,
                                   const PlanOverride& asked = {});

// What a version that is served needs to become another one.
enum class VersionChange : uint8_t { kNone, kInstances, kReload };
// Between configurations as they were asked for; absent: derived from the file.
[[nodiscard]] VersionChange compare_configs(const std::optional<ModelConfig>& served,
                                            const std::optional<ModelConfig>& asked);

inline constexpr std::string_view kMissingModel = "it is required and stands in no repository";
// The required models that were not found, by name.
[[nodiscard]] std::vector<std::string> missing_models(const std::set<std::string>& required,
                                                      const std::vector<ports::FoundModel>& found);

// The versions that a policy picks, ascending. A specific version that does not exist is left out.
[[nodiscard]] std::vector<int64_t> chosen_versions(const VersionPolicy& policy,
                                                   const std::vector<int64_t>& found);

}  // namespace baton::service
