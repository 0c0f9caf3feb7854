#include "service/fleet/settle_watch.h"

#include <set>
#include <utility>

namespace baton::service {

void SettleWatch::note(Watched& watched, bool present, uint64_t stamp, Instant now) {
  if (watched.present == present && watched.stamp == stamp && watched.since != Instant()) return;
  watched.present = present;
  watched.stamp = stamp;
  watched.since = now;
}

// As it was when it was last handed out.
bool SettleWatch::settled_before(const Watched& watched) {
  return watched.acted && watched.acted_on == watched.present &&
         watched.acted_stamp == watched.stamp;
}

SettleWatch::Turn SettleWatch::look(std::vector<ports::FoundModel> found, Instant now) {
  std::map<std::string, ports::FoundModel*> models;
  for (ports::FoundModel& model : found) {
    models[model.name] = &model;
    Watched& watched = watched_[model.name];
    note(watched, true, model.stamp, now);
    if (first_ && model.unchanged >= settle_) watched.since = now - settle_;
  }
  first_ = false;
  Turn turn;
  for (auto it = watched_.begin(); it != watched_.end();) {
    auto& [name, watched] = *it;
    const auto model = models.find(name);
    if (model == models.end()) note(watched, false, 0, now);
    const bool rests = now - watched.since >= settle_;
    const bool known = settled_before(watched);
    if (!known && !rests) turn.unsettled = true;
    if (!known && rests) {
      if (watched.present) turn.changed.push_back(std::move(*model->second));
      if (!watched.present && watched.acted) turn.removed.push_back(name);
      watched.acted = true;
      watched.acted_on = watched.present;
      watched.acted_stamp = watched.stamp;
    }
    const bool over = !watched.present && settled_before(watched);
    it = over ? watched_.erase(it) : std::next(it);
  }
  return turn;
}

}  // namespace baton::service
