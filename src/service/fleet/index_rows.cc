#include "service/fleet/index_rows.h"

#include <string_view>
#include <utility>

namespace baton::service {
namespace {

constexpr std::string_view kNotLoaded = "not loaded";

// The protocol's words.
std::string_view index_state(ModelState state) {
  switch (state) {
    case ModelState::kPending:
    case ModelState::kLoading:
    case ModelState::kWarming:
      return "LOADING";
    case ModelState::kReady:
      return "READY";
    case ModelState::kDraining:
    case ModelState::kStopping:
      return "UNLOADING";
    case ModelState::kGone:
    case ModelState::kFailed:
      break;
  }
  return "UNAVAILABLE";
}

void add_model(const ports::ModelEntry& entry, bool ready_only,
               std::vector<ports::ModelIndexRow>& rows) {
  if (entry.versions.empty() && !ready_only) {
    rows.push_back({entry.name, "", "UNAVAILABLE",
                    entry.reason.empty() ? std::string(kNotLoaded) : entry.reason});
  }
  for (const auto& [number, version] : entry.versions) {
    if (ready_only && version->state != ModelState::kReady) continue;
    rows.push_back({entry.name, std::to_string(number), std::string(index_state(version->state)),
                    entry.reason.empty() ? version->reason : entry.reason});
  }
}

}  // namespace

std::vector<ports::ModelIndexRow> index_rows(const ports::Directory& directory,
                                             const std::vector<std::string>& names,
                                             bool ready_only) {
  std::map<std::string, const ports::ModelEntry*> models;
  for (const std::string& name : names) models[name] = nullptr;
  for (const auto& [name, entry] : directory.models) models[name] = entry.get();
  std::vector<ports::ModelIndexRow> rows;
  for (const auto& [name, entry] : models) {
    if (entry != nullptr) {
      add_model(*entry, ready_only, rows);
    } else if (!ready_only) {
      rows.push_back({name, "", "UNAVAILABLE", std::string(kNotLoaded)});
    }
  }
  return rows;
}

}  // namespace baton::service
