#include "protocol/oip/shared_memory.h"

#include "base/json_writer.h"

namespace baton::protocol::oip {

Result<RegionText, Refusal> parse_region(std::string_view body, json::JsonParser& parser) {
  RegionText region;
  bool sized = false;
  const auto parsed = parser.parse_copy(body, [&](json::JsonValue& root) {
    return root.each_field([&](std::string_view key, json::JsonValue& value) {
      if (key == "key") return value.read_string(region.key) || value.within("\"key\"");
      if (key == "offset") return value.read_uint64(region.offset) || value.within("\"offset\"");
      if (key != "byte_size") return true;
      sized = true;
      return value.read_uint64(region.bytes) || value.within("\"byte_size\"");
    });
  });
  if (!parsed.has_value()) {
    return fail(Refusal{
        EndReason::kInvalid, "the registration is not valid: " + parsed.error().message, {}});
  }
  if (region.key.empty() || !sized) {
    return fail(Refusal{EndReason::kInvalid, "a registration has \"key\" and \"byte_size\"", {}});
  }
  return region;
}

std::string regions_json(std::span<const RegionText> regions) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const RegionText& region : regions) {
    json.begin_object().field("name", region.name).field("key", region.key);
    json.field("offset", region.offset).field("byte_size", region.bytes).end_object();
  }
  json.end_array();
  return out;
}

}  // namespace baton::protocol::oip
