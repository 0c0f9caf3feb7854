#pragma once
// The bodies of the system shared memory extension over REST.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "domain/end_reason.h"
#include "protocol/json/reader.h"

namespace baton::protocol::oip {

struct RegionText {
  std::string name;
  std::string key;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// {"key", "offset", "byte_size"} of a registration; the name is the route's. Error: kInvalid.
[[nodiscard]] Result<RegionText, Refusal> parse_region(std::string_view body,
                                                       json::JsonParser& parser);
// The regions with their names.
[[nodiscard]] std::string regions_json(std::span<const RegionText> regions);

}  // namespace baton::protocol::oip
