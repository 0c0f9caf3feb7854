#include "adapters/sqlite/sqlite_store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace baton::adapters::sqlite {
namespace {

namespace fs = std::filesystem;

class SqliteStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "baton_state_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = (folder_ / "state.db").string();
  }
  void TearDown() override { fs::remove_all(folder_); }
  // What another program does to the file.
  void change(const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  }
  fs::path folder_;
  std::string path_;
  const ports::CurveKey key_{"m", 1, "f"};
  const LatencyCurve curve_{{{1, Duration::us(10), 5}, {8, Duration::us(20), 7}}};
};

TEST_F(SqliteStoreTest, ACurveSurvivesARestart) {
  {
    auto store = open_sqlite_store(path_);
    ASSERT_TRUE(store.has_value()) << store.error().message;
    ASSERT_TRUE((*store)->save_curve(key_, curve_).has_value());
  }
  auto store = open_sqlite_store(path_);
  const auto loaded = (*store)->load_curve(key_);
  ASSERT_TRUE(loaded.has_value() && loaded->has_value());
  ASSERT_EQ((*loaded)->points().size(), 2U);
  EXPECT_EQ((*loaded)->points()[1].duration, Duration::us(20));
  EXPECT_EQ((*loaded)->points()[1].samples, 7U);
}

TEST_F(SqliteStoreTest, AChangedModelStartsAfresh) {
  auto store = open_sqlite_store(path_);
  ASSERT_TRUE((*store)->save_curve(key_, curve_).has_value());
  EXPECT_FALSE((*store)->load_curve({"m", 1, "other"})->has_value());
  ASSERT_TRUE((*store)->save_curve({"m", 1, "other"}, curve_).has_value());
  EXPECT_FALSE((*store)->load_curve(key_)->has_value());
}

TEST_F(SqliteStoreTest, ANewerSchemaIsRefusedAndNotChanged) {
  {
    auto store = open_sqlite_store(path_);
  }
  change("PRAGMA user_version=99");
  const auto store = open_sqlite_store(path_);
  ASSERT_FALSE(store.has_value());
  EXPECT_NE(store.error().message.find("schema version 99"), std::string::npos);
}

TEST_F(SqliteStoreTest, PointsThatAreNoCurveAreAnErrorAndCanBeReplaced) {
  const std::string insert = "INSERT INTO curve_point VALUES('m', 1, 'f', ";
  const char* longer =
      "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
      " INSERT INTO curve_point SELECT 'm', 1, 'f', i, 90000, 1 FROM n";
  auto store = open_sqlite_store(path_);
  ASSERT_TRUE(store.has_value());
  for (const std::string& sql : {
           insert + "0, 100, 1)",
           insert + "-1, 100, 1)",
           insert + "4294967300, 90000, 1)",  // 4 in 32 bits
           insert + "16, -5, 1)",
           insert + "16, 5, 1)",
           insert + "'many', 90000, 1)",
           insert + "16, 9223372036854775807, 1)",
           std::string(longer),
       }) {
    ASSERT_TRUE((*store)->save_curve(key_, curve_).has_value());
    EXPECT_TRUE((*store)->load_curve(key_).has_value());
    change(sql);
    EXPECT_FALSE((*store)->load_curve(key_).has_value()) << sql;
  }
  ASSERT_TRUE((*store)->save_curve(key_, curve_).has_value());
  EXPECT_TRUE((*store)->load_curve(key_)->has_value());
}

TEST_F(SqliteStoreTest, AFileThatIsNoDatabaseIsAClearError) {
  std::ofstream(path_) << std::string(10'000, 'x');
  EXPECT_FALSE(open_sqlite_store(path_).has_value());
  EXPECT_FALSE(open_sqlite_store("/no/such/folder/state.db").has_value());
}

}  // namespace
}  // namespace baton::adapters::sqlite
