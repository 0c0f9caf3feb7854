#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "ports/shared_memory.h"

namespace baton::adapters {

struct SharedMemoryLimits {
  uint64_t bytes = 0;     // of all regions together
  size_t regions = 1024;  // each holds a descriptor
};

class SystemSharedMemory final : public ports::SharedMemory {
 public:
  explicit SystemSharedMemory(SharedMemoryLimits limits, std::string folder = "/dev/shm");
  ~SystemSharedMemory() override;

  Result<void, Refusal> add(const ports::SharedRegion& region) override;
  void remove(std::string_view name) override;
  [[nodiscard]] std::vector<ports::SharedRegion> regions() const override;
  [[nodiscard]] Result<void, Refusal> check(const MemoryPlace& place) const override;
  Result<void, Refusal> read(const MemoryPlace& place, std::span<std::byte> out) const override;
  Result<void, Refusal> write(const MemoryPlace& place,
                              std::span<const std::byte> bytes) const override;

 private:
  class Region;
  using RegionPtr = std::shared_ptr<const Region>;
  Result<void, Refusal> check_limits(const ports::SharedRegion& region) const;
  Result<RegionPtr, Refusal> find(const MemoryPlace& place) const;

  const SharedMemoryLimits limits_;
  const std::string folder_;
  mutable std::mutex mutex_;
  std::map<std::string, RegionPtr, std::less<>> regions_;  // under mutex_
  uint64_t bytes_ = 0;                                     // under mutex_
};

}  // namespace baton::adapters
