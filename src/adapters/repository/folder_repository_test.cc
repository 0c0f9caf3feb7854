#include "adapters/repository/folder_repository.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace baton::adapters::repository {
namespace {

namespace fs = std::filesystem;
using ports::FoundModel;

class FolderRepositoryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "baton_repo_XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  fs::path root_;
};

TEST_F(FolderRepositoryTest, FindsModelsVersionsAndConfigurations) {
  write("a/m/2/model.onnx", "x");
  write("a/m/10/model.onnx", "x");
  write("a/m/03/model.onnx", "x");
  write("a/m/config.pbtxt", "name: 'm'");
  write("a/empty/readme", "x");
  write("a/.hidden/1/model.onnx", "x");
  write("b/folder/1/model.onnx/model.onnx", "x");
  const auto repository = make_folder_repository({(root_ / "a").string(), (root_ / "b").string()});
  const auto models = repository->scan();
  ASSERT_TRUE(models.has_value());
  ASSERT_EQ(models->size(), 3U);
  EXPECT_EQ((*models)[0].problem, "it has no version folder (such as 1/)");
  EXPECT_TRUE(repository->model_file((*models)[1], 1, "model.onnx").has_value());
  const FoundModel& m = (*models)[2];
  EXPECT_EQ(m.versions, (std::vector<int64_t>{2, 10}));
  EXPECT_EQ(m.ignored.size(), 1U);
  EXPECT_EQ(m.config_text, "name: 'm'");
  EXPECT_FALSE(repository->model_file(m, 3, "model.onnx").has_value());
}

TEST_F(FolderRepositoryTest, TheSameNameInTwoRepositoriesIsAProblem) {
  write("a/m/1/model.onnx", "x");
  write("b/m/1/model.onnx", "x");
  const auto models =
      make_folder_repository({(root_ / "a").string(), (root_ / "b").string()})->scan();
  ASSERT_EQ(models->size(), 1U);
  EXPECT_EQ((*models)[0].problem, "it stands in two repositories");
}

TEST_F(FolderRepositoryTest, NothingOutsideTheModelsFolderIsRead) {
  write("a/m/1/model.onnx", "x");
  write("a/secret", "x");
  const auto repository = make_folder_repository({(root_ / "a").string()});
  const auto models = repository->scan();
  EXPECT_FALSE(repository->read_file((*models)[0], "../secret", 100).has_value());
  EXPECT_FALSE(repository->read_file((*models)[0], "/etc/hostname", 100).has_value());
  EXPECT_FALSE(repository->model_file((*models)[0], 1, "../../../secret").has_value());
  EXPECT_FALSE(repository->read_file((*models)[0], "1/model.onnx", 0).has_value());
}

TEST_F(FolderRepositoryTest, AFolderWhoseNameCannotBeShownIsAProblemOfItsOwn) {
  write("a/good/1/model.onnx", "x");
  write("a/line\nbreak/1/model.onnx", "x");
  write(std::string("a/b\xff\xc3") + "z/1/model.onnx", "x");
  const auto models = make_folder_repository({(root_ / "a").string()})->scan();
  ASSERT_TRUE(models.has_value());
  ASSERT_EQ(models->size(), 3U);
  EXPECT_EQ((*models)[0].name, "b\\xff\\xc3z");
  EXPECT_EQ((*models)[0].problem, "the name of its folder is not printable UTF-8");
  EXPECT_EQ((*models)[1].problem, "");
  EXPECT_EQ((*models)[2].name, "line\\x0abreak");
  EXPECT_NE((*models)[2].problem, "");
}

TEST_F(FolderRepositoryTest, AMissingRepositoryIsOneClearSentence) {
  const auto models = make_folder_repository({(root_ / "none").string()})->scan();
  ASSERT_FALSE(models.has_value());
  EXPECT_NE(models.error().message.find("cannot be read"), std::string::npos);
}

TEST_F(FolderRepositoryTest, AStampFollowsFilesAndNotWhatEditorsLeave) {
  write("a/m/1/model.onnx", "x");
  write("a/m/2/model.onnx", "x");
  write("a/m/config.pbtxt", "");
  const auto repository = make_folder_repository({(root_ / "a").string()});
  const auto look = [&] { return repository->find("m")->value(); };
  const FoundModel before = look();
  for (const char* name : {".x.swp", "config.pbtxt~", "#config.pbtxt#", "4913", "1/.part"}) {
    write(std::string("a/m/") + name, "x");
  }
  EXPECT_EQ(look().stamp, before.stamp);
  write("a/m/1/model.onnx", "xy");
  const FoundModel first = look();
  EXPECT_NE(first.stamp, before.stamp);
  EXPECT_NE(first.version_stamps.at(1), before.version_stamps.at(1));
  EXPECT_EQ(first.version_stamps.at(2), before.version_stamps.at(2));
  write("a/m/config.pbtxt", "max_batch_size: 1");  // its versions are the same files as before
  EXPECT_NE(look().stamp, first.stamp);
  EXPECT_EQ(look().version_stamps, first.version_stamps);
  write("a/m/warmup/data", "x");
  EXPECT_NE(look().version_stamps.at(1), first.version_stamps.at(1));
  EXPECT_NE(look().version_stamps.at(2), first.version_stamps.at(2));
}

TEST_F(FolderRepositoryTest, ATimeOfModificationAloneIsAChange) {
  write("a/m/1/model.onnx", "x");
  const auto repository = make_folder_repository({(root_ / "a").string()});
  const uint64_t before = repository->find("m")->value().stamp;
  const fs::path file = root_ / "a/m/1/model.onnx";
  fs::last_write_time(file, fs::last_write_time(file) - std::chrono::hours(1));
  const FoundModel after = repository->find("m")->value();
  EXPECT_NE(after.stamp, before);
  // A copy that keeps its source's times has changed now all the same.
  EXPECT_LT(after.unchanged, Duration::s(1800));
}

TEST_F(FolderRepositoryTest, LinksInACircleEnd) {
  write("a/m/1/model.onnx", "x");
  fs::create_directory_symlink(root_ / "a/m", root_ / "a/m/1/loop");
  const auto repository = make_folder_repository({(root_ / "a").string()});
  EXPECT_TRUE(repository->find("m")->has_value());
}

TEST_F(FolderRepositoryTest, OneModelIsFoundByItsName) {
  write("a/m/1/model.onnx", "x");
  write("a/.hidden/1/model.onnx", "x");
  write("secret/1/model.onnx", "x");
  const auto repository = make_folder_repository({(root_ / "a").string()});
  EXPECT_TRUE(repository->find("m")->has_value());
  EXPECT_EQ(repository->names().value(), std::vector<std::string>{"m"});
  for (const char* name : {"", ".", "..", ".hidden", "../secret", "m/1", "nothing"}) {
    EXPECT_FALSE(repository->find(name)->has_value()) << name;
  }
  EXPECT_FALSE(repository->find(std::string("m\0x", 3))->has_value());
}

TEST_F(FolderRepositoryTest, FilesOfAClientLiveAsLongAsTheirModel) {
  const auto repository = make_folder_repository({});
  auto model = repository->stage("m", {{"3/model.onnx", "abc"}, {"3/data/weights", "w"}});
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ(model->name, "m");
  EXPECT_EQ(model->versions, std::vector<int64_t>{3});
  const fs::path folder = model->folder;
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  EXPECT_EQ(repository->read_file(*model, "3/data/weights", 10).value(), "w");
  FoundModel copy = *model;
  *model = {};
  EXPECT_TRUE(fs::exists(folder));
  copy = {};
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(FolderRepositoryTest, FilesOfAClientStayInTheirFolder) {
  const auto repository = make_folder_repository({});
  for (const char* name : {"model.onnx", "1", "1/", "../1/x", "1/../../x", "/1/x", "0/x", "01/x"}) {
    EXPECT_FALSE(repository->stage("m", {{name, "x"}}).has_value()) << name;
  }
}

}  // namespace
}  // namespace baton::adapters::repository
