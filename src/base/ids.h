#pragma once
// Typed identifiers: a ModelId cannot be passed where an InstanceId is meant.

#include <compare>
#include <cstdint>
#include <functional>

namespace baton {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  explicit constexpr Id(uint64_t value) : value_(value) {}
  [[nodiscard]] constexpr uint64_t value() const { return value_; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  uint64_t value_ = 0;
};

}  // namespace baton

template <class Tag>
struct std::hash<baton::Id<Tag>> {
  size_t operator()(baton::Id<Tag> id) const noexcept { return std::hash<uint64_t>{}(id.value()); }
};
