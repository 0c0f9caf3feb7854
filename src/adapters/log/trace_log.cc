#include "adapters/log/trace_log.h"

#include <algorithm>

namespace baton::adapters::log {
namespace {

TraceOverrides with_left(TraceOverrides overrides, int64_t left) {
  if (overrides.count) overrides.count = left;
  return overrides;
}

}  // namespace

TraceSettings TraceLog::settings(const std::string& model) const {
  const std::lock_guard lock(mutex_);
  return settings_of(model);
}

TraceSettings TraceLog::settings_of(const std::string& model) const {
  const TraceSettings server = with_left(global_.overrides, global_.left).over({});
  const auto said = models_.find(model);
  if (said == models_.end()) return server;
  return with_left(said->second.overrides, said->second.left).over(server);
}

TraceOverrides TraceLog::overrides(const std::string& model) const {
  const std::lock_guard lock(mutex_);
  if (model.empty()) return global_.overrides;
  const auto said = models_.find(model);
  return said == models_.end() ? TraceOverrides() : said->second.overrides;
}

void TraceLog::apply(const std::string& model, const TraceOverrides& overrides) {
  const std::lock_guard lock(mutex_);
  Said& said = model.empty() ? global_ : models_[model];
  if (said.overrides.count != overrides.count) said.left = overrides.count.value_or(0);
  said.overrides = overrides;
  if (!model.empty() && overrides == TraceOverrides()) models_.erase(model);
  file_->set_frequency(settings_of("").log_frequency);
  on_ = settings_of("").timestamps || std::ranges::any_of(models_, [this](const auto& entry) {
          return settings_of(entry.first).timestamps;
        });
  if (!on_) seen_.clear();
}

int64_t* TraceLog::left_for(const std::string& model) {
  const auto said = models_.find(model);
  if (said != models_.end() && said->second.overrides.count) return &said->second.left;
  return global_.overrides.count ? &global_.left : nullptr;
}

bool TraceLog::sample(const std::string& model) {
  if (!on_.load(std::memory_order_relaxed)) return false;
  const std::lock_guard lock(mutex_);
  const TraceSettings settings = settings_of(model);
  if (!settings.timestamps || settings.count == 0) return false;
  if (++seen_[model] % settings.rate != 0) return false;
  if (int64_t* left = left_for(model); left != nullptr && *left > 0) --*left;
  return true;
}

}  // namespace baton::adapters::log
