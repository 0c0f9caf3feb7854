#pragma once
// Which models' folders changed and have rested since, from scans that follow one another. Pure.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "ports/model_repository.h"

namespace baton::service {

class SettleWatch {
 public:
  // `settle`: how long a folder must look the same before it is acted on.
  explicit SettleWatch(Duration settle) : settle_(settle) {}

  struct Turn {
    std::vector<ports::FoundModel> changed;  // new ones among them; as they are now
    std::vector<std::string> removed;
    bool unsettled = false;  // something changed and has not rested yet: look again after `settle`
  };
  // A scan that was taken at `now`. A folder that is seen for the first time in the first scan
  // rests already when its files say so.
  [[nodiscard]] Turn look(std::vector<ports::FoundModel> found, Instant now);

 private:
  struct Watched {
    bool present = false;   // in the last scan
    uint64_t stamp = 0;     // as it was then
    Instant since;          // since when it looks so
    bool acted = false;     // it was once handed out, as
    bool acted_on = false;  // present or not,
    uint64_t acted_stamp = 0;
  };
  void note(Watched& watched, bool present, uint64_t stamp, Instant now);
  [[nodiscard]] static bool settled_before(const Watched& watched);

  const Duration settle_;
  bool first_ = true;
  std::map<std::string, Watched> watched_;  // what is gone and was acted on is left out
};

}  // namespace baton::service
