#pragma once
// FNV-1a over 64 bits: for trace hashes and keys, never where an attacker chooses the input of a
// table.

#include <cstdint>
#include <string_view>

namespace baton {

class Fnv1a {
 public:
  constexpr void add(uint64_t word) {
    for (int shift = 0; shift < 64; shift += 8) add_byte(static_cast<uint8_t>(word >> shift));
  }
  constexpr void add(std::string_view text) {
    for (char c : text) add_byte(static_cast<uint8_t>(c));
    add_byte(0xff);  // ends the field, so that "ab","c" differs from "a","bc"
  }
  [[nodiscard]] constexpr uint64_t value() const { return hash_; }

 private:
  constexpr void add_byte(uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3ULL; }
  uint64_t hash_ = 0xcbf29ce484222325ULL;
};

}  // namespace baton
