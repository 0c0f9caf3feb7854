#include "domain/model.h"

#include <array>

namespace baton {

std::string_view model_state_name(ModelState state) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "pending", "loading", "warming", "ready", "draining", "stopping", "gone", "failed"};
  return kNames[static_cast<size_t>(state)];
}

}  // namespace baton
