#include "service/gateway/gateway.h"

namespace baton::service {

Result<std::vector<ModelStatistics>, Refusal> Gateway::statistics(const std::string& model,
                                                                  std::optional<int64_t> version) {
  std::vector<ModelStatistics> out;
  const auto add = [&](const ports::ModelEntry& entry) {
    for (const auto& [number, served] : entry.versions) {
      if (served->state != ModelState::kReady) continue;
      if (version && number != *version) continue;
      out.push_back(ports_.telemetry.statistics(*served, ports_.clock));
    }
  };
  if (model.empty()) {
    for (const auto& [name, entry] : directory().models) add(*entry);
    return out;
  }
  auto found = find_model(model, version);
  const bool known = directory().complete && directory_->models.contains(model);
  if (!found.has_value() && (!known || found.error().reason != EndReason::kNotReady)) {
    return fail(std::move(found).error());
  }
  add(*directory_->models.find(model)->second);
  if (!out.empty()) return out;
  // Triton's status for it too: 400, where infer says 503.
  const std::string which =
      version ? "version " + std::to_string(*version) + " of model \"" + model + "\" is not ready"
              : "model \"" + model + "\" has no version that is ready";
  return fail(Refusal{EndReason::kInvalid, which + ": it has no statistics", {}});
}

}  // namespace baton::service
