#include "adapters/repository/staged_folder.h"

#include <stdlib.h>

#include <algorithm>
#include <charconv>
#include <fstream>

namespace baton::adapters::repository {
namespace {

namespace fs = std::filesystem;

Result<void, LoadFailure> write_file(const fs::path& folder, const std::string& name,
                                     const std::string& content) {
  const fs::path path = folder / name;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream out(path, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!error && out.good()) return {};
  return fail(LoadFailure{"the file \"" + name + "\" cannot be kept for loading",
                          error ? error.message() : "no room, or no right to write"});
}

Result<void, LoadFailure> check_name(const std::string& name) {
  const size_t slash = name.find('/');
  const bool named = slash != std::string::npos && slash + 1 < name.size();
  if (named && parse_version(name.substr(0, slash)) && is_inside(name) && name.back() != '/' &&
      name.find('\0') == std::string::npos) {
    return {};
  }
  return fail(LoadFailure{"a file is named <version>/<file> and lies inside its version's folder"});
}

}  // namespace

std::optional<int64_t> parse_version(const std::string& name) {
  if (name.empty() || name.front() == '0') return std::nullopt;
  int64_t version = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), version);
  if (error != std::errc() || end != name.data() + name.size() || version < 1) return std::nullopt;
  return version;
}

bool is_inside(const std::string& name) {
  if (name.empty() || name.front() == '/') return false;
  const fs::path path(name);
  return std::ranges::none_of(path, [](const fs::path& part) { return part == ".."; });
}

Result<StagedFolder, LoadFailure> stage_files(const std::map<std::string, std::string>& files) {
  for (const auto& [name, content] : files) BATON_TRY(check_name(name));
  std::error_code error;
  std::string pattern = (fs::temp_directory_path(error) / "baton-load-XXXXXX").string();
  if (error || mkdtemp(pattern.data()) == nullptr) {
    return fail(LoadFailure{"there is no folder to keep its files for loading", error.message()});
  }
  StagedFolder staged;
  staged.path = pattern;
  staged.keep = std::shared_ptr<const void>(nullptr, [folder = staged.path](const void*) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  });
  for (const auto& [name, content] : files) BATON_TRY(write_file(staged.path, name, content));
  return staged;
}

}  // namespace baton::adapters::repository
