#pragma once

#include <map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "ports/engine.h"

namespace baton::ports::testing {

// Keeps every end; a second end of one call is a failed check. On the calls' home only.
class RecordingEvents final : public EngineEvents {
 public:
  void on_end(CallId id, EngineEnd end) override {
    BATON_CHECK(!ends_.contains(id));
    order_.push_back(id);
    ends_.emplace(id, std::move(end));
  }
  [[nodiscard]] bool ended(CallId id) const { return ends_.contains(id); }
  [[nodiscard]] const EngineEnd& end_of(CallId id) const { return ends_.at(id); }
  [[nodiscard]] size_t count() const { return ends_.size(); }
  [[nodiscard]] const std::vector<CallId>& order() const { return order_; }

 private:
  std::map<CallId, EngineEnd> ends_;
  std::vector<CallId> order_;
};

}  // namespace baton::ports::testing
