#include "adapters/repository/folder_repository.h"

#include <gtest/gtest.h>
#include <stdlib.h>

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

}  // namespace
}  // namespace baton::adapters::repository
