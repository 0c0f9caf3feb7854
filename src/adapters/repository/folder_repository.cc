#include "adapters/repository/folder_repository.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "adapters/repository/folder_stamp.h"
#include "adapters/repository/staged_folder.h"
#include "base/utf8.h"

namespace baton::adapters::repository {
namespace {

namespace fs = std::filesystem;
using ports::FoundModel;

constexpr size_t kMostConfigBytes = 1 << 20;
constexpr size_t kMostModels = 4096;

Result<std::string, LoadFailure> read_whole(const fs::path& path, const std::string& shown,
                                            size_t max_bytes) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) return fail(LoadFailure{shown + " cannot be read: " + error.message()});
  if (size > max_bytes) {
    return fail(LoadFailure{shown + " has " + std::to_string(size) + " bytes; the limit is " +
                            std::to_string(max_bytes)});
  }
  std::ifstream in(path, std::ios::binary);
  std::string text(size, '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(size))) {
    return fail(LoadFailure{shown + " cannot be read"});
  }
  return text;
}

// A name as it may stand in logs, JSON and metrics: what is no printable UTF-8 becomes \xNN.
std::string escaped(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  while (!name.empty()) {
    const auto byte = static_cast<unsigned char>(name.front());
    const size_t length = utf8_sequence_length(name);
    if (length > 0 && byte >= ' ' && byte != 0x7f) {
      out.append(name.substr(0, length));
    } else {
      out.append("\\x") += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
    name.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

// A folder's name as a client may write it: no path, not hidden.
bool is_one_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos && escaped(name) == name;
}

FoundModel inspect(const fs::path& folder) {
  FoundModel model;
  model.name = folder.filename().string();
  model.folder = folder.string();
  if (std::string shown = escaped(model.name); shown != model.name) {
    model.name = std::move(shown);
    model.problem = "the name of its folder is not printable UTF-8";
    return model;
  }
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory(error)) continue;
    if (const auto version = parse_version(name)) {
      model.versions.push_back(*version);
    } else if (!name.empty() && name.front() >= '0' && name.front() <= '9') {
      model.ignored.push_back(escaped(name) +
                              ": a version is a positive integer without leading zeros");
    }
  }
  std::ranges::sort(model.versions);
  std::ranges::sort(model.ignored);
  if (error) model.problem = "its folder cannot be read: " + error.message();
  const fs::path config = folder / "config.pbtxt";
  if (fs::exists(config, error)) {
    auto text = read_whole(config, "config.pbtxt", kMostConfigBytes);
    if (text.has_value()) {
      model.config_text = std::move(*text);
    } else {
      model.problem = text.error().message;
    }
  }
  if (model.versions.empty() && model.problem.empty()) {
    model.problem = "it has no version folder (such as 1/)";
  }
  read_stamps(folder, model);
  return model;
}

class FolderRepository final : public ports::ModelRepository {
 public:
  explicit FolderRepository(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  Result<std::vector<FoundModel>, LoadFailure> scan() override {
    BATON_ASSIGN(const auto folders, model_folders());
    std::map<std::string, FoundModel> models;
    for (const fs::path& folder : folders) {
      add(models, inspect(folder));
      if (models.size() > kMostModels) {
        return fail(LoadFailure{"the repositories hold more than " + std::to_string(kMostModels) +
                                " models"});
      }
    }
    std::vector<FoundModel> out;
    out.reserve(models.size());
    for (auto& [name, model] : models) out.push_back(std::move(model));
    return out;
  }

  Result<std::optional<FoundModel>, LoadFailure> find(const std::string& name) override {
    std::map<std::string, FoundModel> models;
    if (!is_one_name(name)) return std::optional<FoundModel>();
    for (const std::string& repository : folders_) {
      const fs::path folder = fs::path(repository) / name;
      std::error_code error;
      if (fs::is_directory(folder, error)) add(models, inspect(folder));
    }
    if (models.empty()) return std::optional<FoundModel>();
    return std::optional<FoundModel>(std::move(models.begin()->second));
  }

  Result<std::vector<std::string>, LoadFailure> names() override {
    BATON_ASSIGN(const auto folders, model_folders());
    std::set<std::string> names;
    for (const fs::path& folder : folders) names.insert(escaped(folder.filename().string()));
    return std::vector<std::string>(names.begin(), names.end());
  }

  Result<FoundModel, LoadFailure> stage(const std::string& name,
                                        const std::map<std::string, std::string>& files) override {
    BATON_ASSIGN(StagedFolder staged, stage_files(files));
    FoundModel model = inspect(staged.path);
    model.name = name;
    model.keep = std::move(staged.keep);
    return model;
  }

  Result<std::string, LoadFailure> model_file(const FoundModel& model, int64_t version,
                                              const std::string& file_name) override {
    const std::string shown = std::to_string(version) + "/" + file_name;
    if (!is_inside(file_name)) return fail(LoadFailure{shown + " lies outside the model's folder"});
    fs::path path = fs::path(model.folder) / std::to_string(version) / file_name;
    std::error_code error;
    // A folder of that name holds the model together with its external data.
    if (fs::is_directory(path, error)) path /= "model.onnx";
    if (!fs::is_regular_file(path, error)) return fail(LoadFailure{shown + " does not exist"});
    return path.string();
  }

  Result<std::string, LoadFailure> read_file(const FoundModel& model, const std::string& name,
                                             size_t max_bytes) override {
    if (!is_inside(name)) return fail(LoadFailure{name + " lies outside the model's folder"});
    return read_whole(fs::path(model.folder) / name, name, max_bytes);
  }

  std::string fingerprint(const std::string& path) override {
    struct stat info{};
    if (stat(path.c_str(), &info) != 0) return "";
    return std::to_string(info.st_size) + "-" + std::to_string(info.st_mtim.tv_sec) + "." +
           std::to_string(info.st_mtim.tv_nsec);
  }

 private:
  // Of all repositories, in no particular order.
  [[nodiscard]] Result<std::vector<fs::path>, LoadFailure> model_folders() const {
    std::vector<fs::path> found;
    for (const std::string& folder : folders_) {
      std::error_code error;
      fs::directory_iterator entries(folder, error);
      if (error) {
        return fail(
            LoadFailure{"the model repository " + folder + " cannot be read: " + error.message()});
      }
      for (const fs::directory_entry& entry : entries) {
        const bool hidden = entry.path().filename().string().starts_with('.');
        if (entry.is_directory(error) && !hidden) found.push_back(entry.path());
      }
    }
    return found;
  }

  static void add(std::map<std::string, FoundModel>& models, FoundModel model) {
    const auto [place, is_new] = models.try_emplace(model.name);
    if (is_new) {
      place->second = std::move(model);
    } else {
      place->second.problem = "it stands in two repositories";
    }
  }

  std::vector<std::string> folders_;
};

}  // namespace

std::unique_ptr<ports::ModelRepository> make_folder_repository(std::vector<std::string> folders) {
  return std::make_unique<FolderRepository>(std::move(folders));
}

}  // namespace baton::adapters::repository
