#include "adapters/repository/folder_stamp.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string_view>

#include "base/hash.h"

namespace baton::adapters::repository {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfigFile = "config.pbtxt";

int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

uint64_t joined(uint64_t stamp, std::string_view path, uint64_t fact) {
  Fnv1a hash;
  hash.add(stamp);
  hash.add(path);
  hash.add(fact);
  return hash.value();
}

// A model's folder is shallow: links that lead in a circle end here.
constexpr int kDeepest = 8;

// Facts of all files, in an order that does not depend on the file system's.
class Walk {
 public:
  void enter(const fs::path& folder, const std::string& prefix, int depth) {
    note_change(folder);
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      struct stat info{};
      if (is_beside(name) || stat(entry->path().c_str(), &info) != 0) continue;
      if (S_ISDIR(info.st_mode)) {
        facts_[prefix + name + "/"] = 0;
        if (depth < kDeepest) enter(entry->path(), prefix + name + "/", depth + 1);
        continue;
      }
      newest_ = std::max(newest_, nanoseconds(info.st_ctim));
      facts_[prefix + name] = joined(static_cast<uint64_t>(info.st_size), "",
                                     static_cast<uint64_t>(nanoseconds(info.st_mtim)));
    }
  }

  // By the path below the model's folder.
  [[nodiscard]] const std::map<std::string, uint64_t>& facts() const { return facts_; }
  [[nodiscard]] int64_t newest() const { return newest_; }

 private:
  void note_change(const fs::path& folder) {
    struct stat info{};
    if (stat(folder.c_str(), &info) == 0) newest_ = std::max(newest_, nanoseconds(info.st_ctim));
  }

  std::map<std::string, uint64_t> facts_;
  int64_t newest_ = 0;
};

}  // namespace

bool is_beside(const std::string& name) {
  if (name.empty() || name.front() == '.' || name.back() == '~') return true;
  if (name.front() == '#' && name.back() == '#') return true;
  return name == "4913";  // what vim writes to see whether it may
}

void read_stamps(const fs::path& folder, ports::FoundModel& model) {
  Walk walk;
  walk.enter(folder, "", 0);
  uint64_t shared = 1;
  for (const auto& [path, fact] : walk.facts()) {
    model.stamp = joined(model.stamp, path, fact);
    const std::string first = path.substr(0, path.find('/'));
    const auto version = std::ranges::find_if(
        model.versions, [&](int64_t number) { return std::to_string(number) == first; });
    if (version != model.versions.end()) {
      uint64_t& stamp = model.version_stamps[*version];
      stamp = joined(stamp, path, fact);
    } else if (path != kConfigFile) {
      shared = joined(shared, path, fact);
    }
  }
  for (int64_t version : model.versions) {
    uint64_t& stamp = model.version_stamps[version];
    stamp = joined(stamp, "", shared);
  }
  const int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  model.unchanged = Duration::ns(std::max<int64_t>(now - walk.newest(), 0));
}

}  // namespace baton::adapters::repository
