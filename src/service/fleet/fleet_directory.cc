#include "service/fleet/fleet_directory.h"

#include <utility>

namespace baton::service {

ports::ModelEntry& FleetDirectory::edit(const std::string& model) {
  auto& place = current_.models[model];
  // Published entries are immutable: the copy takes the place of the old one at the next publish().
  auto copy =
      place ? std::make_shared<ports::ModelEntry>(*place) : std::make_shared<ports::ModelEntry>();
  copy->name = model;
  ports::ModelEntry& entry = *copy;
  place = std::move(copy);
  return entry;
}

void FleetDirectory::set_version(const std::string& model, ports::ModelVersion version) {
  ports::ModelEntry& entry = edit(model);
  entry.has_been_ready = entry.has_been_ready || version.state == ModelState::kReady;
  const int64_t number = version.version;
  entry.versions[number] = std::make_shared<const ports::ModelVersion>(std::move(version));
}

void FleetDirectory::erase_version(const std::string& model, int64_t version) {
  edit(model).versions.erase(version);
}

const ports::ModelEntry* FleetDirectory::entry(const std::string& model) const {
  const auto found = current_.models.find(model);
  return found == current_.models.end() ? nullptr : found->second.get();
}

const ports::ModelVersion* FleetDirectory::version(const std::string& model,
                                                   int64_t version) const {
  const ports::ModelEntry* of_model = entry(model);
  if (of_model == nullptr) return nullptr;
  const auto found = of_model->versions.find(version);
  return found == of_model->versions.end() ? nullptr : found->second.get();
}

void FleetDirectory::publish() {
  published_.store(std::make_shared<const ports::Directory>(current_), std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_release);
}

void FleetDirectory::when_followed(std::function<void()> then) const {
  if (followers_.empty()) return then();
  // Counts the followers that are still to come; the last one to let go of it calls.
  const auto last = std::shared_ptr<const void>(nullptr, [then](const void*) { then(); });
  for (ports::DirectoryFollower* follower : followers_) {
    follower->follow([kept = last]() mutable { kept.reset(); });
  }
}

}  // namespace baton::service
