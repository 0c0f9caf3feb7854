#include "adapters/shared_memory/system_shared_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

namespace baton::adapters {
namespace {

constexpr size_t kMostKeyBytes = 255;
constexpr uint64_t kMostOffset = std::numeric_limits<int64_t>::max();

std::unexpected<Refusal> invalid(std::string message) {
  return fail(Refusal{EndReason::kInvalid, std::move(message), {}});
}

std::string quoted(std::string_view name) {
  return "\"" + std::string(name.substr(0, kMostKeyBytes)) + "\"";
}

bool fits(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

// Empty: the key names no object.
std::string_view object_of(std::string_view key) {
  if (key.starts_with('/')) key.remove_prefix(1);
  const bool is_name = !key.empty() && key.size() <= kMostKeyBytes && key != "." && key != ".." &&
                       key.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
  return is_name ? key : std::string_view();
}

}  // namespace

// An open object, closed with its last user.
class SystemSharedMemory::Region {
 public:
  Region(int descriptor, ports::SharedRegion description)
      : descriptor_(descriptor), description_(std::move(description)) {}
  ~Region() { close(descriptor_); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  [[nodiscard]] const ports::SharedRegion& description() const { return description_; }

  // Whether the object still has these bytes of the region.
  [[nodiscard]] Result<void, Refusal> check_object(uint64_t offset, uint64_t bytes) const {
    const std::string region = "shared memory region " + quoted(description_.name);
    struct stat info{};
    if (fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
      return invalid(region + " cannot be used");
    }
    if (info.st_nlink == 0) return invalid(region + ": its object has been unlinked");
    const auto size = static_cast<uint64_t>(std::max<off_t>(info.st_size, 0));
    if (!fits(description_.offset, offset + bytes, size)) {
      return invalid(region + ": its object has " + std::to_string(size) +
                     " bytes, fewer than are asked for");
    }
    return {};
  }

  [[nodiscard]] Result<void, Refusal> read(uint64_t offset, std::span<std::byte> out) const {
    return copy(offset, out.size(), [&](size_t done, off_t at) {
      return pread(descriptor_, out.data() + done, out.size() - done, at);
    });
  }
  [[nodiscard]] Result<void, Refusal> write(uint64_t offset,
                                            std::span<const std::byte> bytes) const {
    return copy(offset, bytes.size(), [&](size_t done, off_t at) {
      return pwrite(descriptor_, bytes.data() + done, bytes.size() - done, at);
    });
  }

 private:
  template <class Step>
  [[nodiscard]] Result<void, Refusal> copy(uint64_t offset, size_t bytes, Step step) const {
    for (size_t done = 0; done < bytes;) {
      const ssize_t moved = step(done, static_cast<off_t>(description_.offset + offset + done));
      if (moved < 0 && errno == EINTR) continue;
      if (moved <= 0) {
        return invalid("shared memory region " + quoted(description_.name) +
                       (moved == 0 ? " ends within the tensor" : " cannot be read or written"));
      }
      done += static_cast<size_t>(moved);
    }
    return {};
  }

  const int descriptor_;
  const ports::SharedRegion description_;
};

SystemSharedMemory::SystemSharedMemory(SharedMemoryLimits limits, std::string folder)
    : limits_(limits), folder_(std::move(folder)) {}

SystemSharedMemory::~SystemSharedMemory() = default;

// Under the lock.
Result<void, Refusal> SystemSharedMemory::check_limits(const ports::SharedRegion& region) const {
  if (regions_.contains(region.name)) {
    return invalid("shared memory region " + quoted(region.name) + " is registered already");
  }
  if (regions_.size() >= limits_.regions) {
    return fail(Refusal{
        EndReason::kOverloaded,
        "the limit of " + std::to_string(limits_.regions) + " shared memory regions is reached",
        {}});
  }
  if (!fits(bytes_, region.bytes, limits_.bytes)) {
    return fail(Refusal{EndReason::kOverloaded,
                        "the regions would exceed limits.shared_memory, " +
                            std::to_string(limits_.bytes) + " bytes in all",
                        {}});
  }
  return {};
}

Result<void, Refusal> SystemSharedMemory::add(const ports::SharedRegion& region) {
  const std::string_view object = object_of(region.key);
  if (region.name.empty()) return invalid("a shared memory region has a name");
  if (object.empty()) return invalid(quoted(region.key) + " is no key of a shared memory object");
  if (region.bytes == 0) return invalid("\"byte_size\" is at least 1");
  if (!fits(region.offset, region.bytes, kMostOffset)) {
    return invalid("\"offset\" and \"byte_size\" are too large");
  }
  {
    const std::lock_guard lock(mutex_);
    BATON_TRY(check_limits(region));
  }
  const std::string path = folder_ + "/" + std::string(object);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) {
    return invalid("shared memory object " + quoted(region.key) +
                   (errno == ENOENT ? " does not exist" : " cannot be opened"));
  }
  const auto made = std::make_shared<const Region>(descriptor, region);
  BATON_TRY(made->check_object(0, region.bytes));
  const std::lock_guard lock(mutex_);
  BATON_TRY(check_limits(region));  // others may have come meanwhile
  regions_.emplace(region.name, made);
  bytes_ += region.bytes;
  return {};
}

void SystemSharedMemory::remove(std::string_view name) {
  std::map<std::string, RegionPtr, std::less<>> removed;  // closed outside the lock
  const std::lock_guard lock(mutex_);
  if (name.empty()) {
    removed.swap(regions_);
    bytes_ = 0;
    return;
  }
  const auto found = regions_.find(name);
  if (found == regions_.end()) return;
  bytes_ -= found->second->description().bytes;
  removed.insert(regions_.extract(found));
}

std::vector<ports::SharedRegion> SystemSharedMemory::regions() const {
  const std::lock_guard lock(mutex_);
  std::vector<ports::SharedRegion> found;
  found.reserve(regions_.size());
  for (const auto& [name, region] : regions_) found.push_back(region->description());
  return found;
}

Result<SystemSharedMemory::RegionPtr, Refusal> SystemSharedMemory::find(
    const MemoryPlace& place) const {
  RegionPtr region;
  {
    const std::lock_guard lock(mutex_);
    const auto found = regions_.find(place.region);
    if (found != regions_.end()) region = found->second;
  }
  if (!region) {
    return invalid("shared memory region " + quoted(place.region) + " is not registered");
  }
  if (!fits(place.offset, place.bytes, region->description().bytes)) {
    return invalid("shared memory region " + quoted(place.region) + " has " +
                   std::to_string(region->description().bytes) + " bytes; the request asks for " +
                   std::to_string(place.bytes) + " from " + std::to_string(place.offset));
  }
  return region;
}

Result<void, Refusal> SystemSharedMemory::check(const MemoryPlace& place) const {
  BATON_ASSIGN(const RegionPtr region, find(place));
  return region->check_object(place.offset, place.bytes);
}

Result<void, Refusal> SystemSharedMemory::read(const MemoryPlace& place,
                                               std::span<std::byte> out) const {
  BATON_ASSIGN(const RegionPtr region, find(place));
  return region->read(place.offset, out.first(std::min<size_t>(out.size(), place.bytes)));
}

Result<void, Refusal> SystemSharedMemory::write(const MemoryPlace& place,
                                                std::span<const std::byte> bytes) const {
  BATON_ASSIGN(const RegionPtr region, find(place));
  if (bytes.size() > place.bytes) return invalid("the tensor is larger than its place");
  // Beyond its end a write would make the object grow again.
  BATON_TRY(region->check_object(place.offset, bytes.size()));
  return region->write(place.offset, bytes);
}

}  // namespace baton::adapters
