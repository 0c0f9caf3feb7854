#pragma once
// The table of all keys. For the files of this room.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "domain/server_config.h"

namespace baton::protocol::server_config {

enum class KeyType : uint8_t { kText, kInteger, kBoolean, kDuration, kBytes, kChoice, kTextList };

// One value as read from the file, of the key's type: kInteger and kBytes as uint64_t.
using KeyValue = std::variant<std::string, uint64_t, bool, Duration, std::vector<std::string>>;

struct Key {
  std::string_view path;  // "listen.http"
  KeyType type = KeyType::kText;
  std::string_view default_text;  // for people
  std::string_view description;
  void (*set)(ServerConfig& config, const KeyValue& value) = nullptr;
  uint64_t low = 0;   // kInteger and kBytes; for kDuration in milliseconds
  uint64_t high = 0;  // inclusive
  std::vector<std::string_view> choices{};
  // What is wrong with a value of the right type; empty: nothing. Null: nothing can be.
  std::string (*check)(const KeyValue& value) = nullptr;
};

[[nodiscard]] std::span<const Key> all_keys();
// The known path that looks most like `path`; empty when none comes near.
[[nodiscard]] std::string nearest_key(std::string_view path);

}  // namespace baton::protocol::server_config
