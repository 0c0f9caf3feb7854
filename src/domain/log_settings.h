#pragma once

#include <cstdint>

namespace baton {

// Which lines of the application log are written.
struct LogSettings {
  bool info = true;
  bool warning = true;
  bool error = true;
  uint32_t verbose_level = 0;  // from 1 on: debug lines too; higher levels add nothing

  bool operator==(const LogSettings&) const = default;
};

}  // namespace baton
