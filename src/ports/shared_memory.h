#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/end_reason.h"
#include "domain/tensor.h"

namespace baton::ports {

// A part of a shared memory object that clients call by a name.
struct SharedRegion {
  std::string name;
  std::string key;  // of the object, as shm_open() takes it
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// Regions that clients have registered. Any thread; nothing waits. What a client does to an object
// meanwhile (truncates, unlinks, removes it) is an error of the call that meets it and no more.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  // Errors: kInvalid: the name is taken, the key is none, there is no such object or it is too
  // small; kOverloaded: over a limit on regions.
  virtual Result<void, Refusal> add(const SharedRegion& region) = 0;
  // All of them for an empty name; an unknown name has no effect. Calls that are at a region go on.
  virtual void remove(std::string_view name) = 0;
  [[nodiscard]] virtual std::vector<SharedRegion> regions() const = 0;  // by name

  // Whether the place lies within its region. Errors of this and what follows: kInvalid.
  [[nodiscard]] virtual Result<void, Refusal> check(const MemoryPlace& place) const = 0;
  // Copies place.bytes bytes out.
  virtual Result<void, Refusal> read(const MemoryPlace& place, std::span<std::byte> out) const = 0;
  // Copies all of `bytes`, which fit into the place.
  virtual Result<void, Refusal> write(const MemoryPlace& place,
                                      std::span<const std::byte> bytes) const = 0;
};

}  // namespace baton::ports
