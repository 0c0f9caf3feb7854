#include "adapters/shared_memory/system_shared_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

namespace baton::adapters {
namespace {

namespace fs = std::filesystem;

struct SharedMemoryTest : ::testing::Test {
  void SetUp() override {
    std::string made = fs::temp_directory_path() / "baton-shm-XXXXXX";
    ASSERT_NE(mkdtemp(made.data()), nullptr);
    folder = made;
    write_object("object", std::string(64, 'x') + std::string(64, 'y'));
    memory = std::make_unique<SystemSharedMemory>(SharedMemoryLimits{.bytes = 1000, .regions = 3},
                                                  folder.string());
  }
  void TearDown() override { fs::remove_all(folder); }
  void write_object(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name, std::ios::binary) << text;
  }
  std::string add(const ports::SharedRegion& region) const {
    const auto added = memory->add(region);
    return added.has_value() ? "" : added.error().message;
  }
  std::string read(const MemoryPlace& place) const {
    std::string out(place.bytes < 4096 ? place.bytes : 0, '\0');
    const auto checked = memory->check(place);
    if (!checked.has_value()) return checked.error().message;
    const auto done = memory->read(place, std::as_writable_bytes(std::span(out)));
    return done.has_value() ? out : done.error().message;
  }
  std::string write(const MemoryPlace& place, std::string_view text) const {
    const auto done = memory->write(place, std::as_bytes(std::span(text)));
    return done.has_value() ? "" : done.error().message;
  }

  fs::path folder;
  std::unique_ptr<SystemSharedMemory> memory;
};

TEST_F(SharedMemoryTest, OffsetsOfRegionAndRequestAddUpOnce) {  // server#8330
  ASSERT_EQ(add({.name = "r", .key = "/object", .offset = 62, .bytes = 10}), "");
  EXPECT_EQ(read({.region = "r", .bytes = 3, .offset = 1}), "xyy");
  EXPECT_EQ(write({.region = "r", .bytes = 4, .offset = 6}, "abcd"), "");
  EXPECT_EQ(read({.region = "r", .bytes = 4, .offset = 6}), "abcd");
  EXPECT_EQ(fs::file_size(folder / "object"), 128U);
}

TEST_F(SharedMemoryTest, PlacesOutsideTheirRegionAreRefused) {  // server#3207
  ASSERT_EQ(add({.name = "r", .key = "object", .offset = 0, .bytes = 100}), "");
  for (const MemoryPlace& place :
       {MemoryPlace{"r", 101, 0}, MemoryPlace{"r", 1, 100}, MemoryPlace{"r", UINT64_MAX, 1},
        MemoryPlace{"r", 2, UINT64_MAX}, MemoryPlace{"r", UINT64_MAX, UINT64_MAX}}) {
    EXPECT_NE(read(place).find("100 bytes"), std::string::npos);
  }
  EXPECT_NE(read({.region = "none", .bytes = 1}).find("not registered"), std::string::npos);
}

TEST_F(SharedMemoryTest, RegionsThatAreNoneAreRefused) {
  const auto refused = [&](const char* key, uint64_t offset, uint64_t bytes) {
    return add({.name = "r", .key = key, .offset = offset, .bytes = bytes});
  };
  for (const char* key : {"", "/", ".", "..", "a/b", "../object", "//object"}) {
    EXPECT_NE(refused(key, 0, 1).find("no key"), std::string::npos) << key;
  }
  EXPECT_NE(refused("other", 0, 1).find("does not exist"), std::string::npos);
  EXPECT_NE(refused("object", 0, 129).find("128 bytes"), std::string::npos);
  EXPECT_NE(refused("object", 128, 1).find("128 bytes"), std::string::npos);
  EXPECT_NE(refused("object", UINT64_MAX, 2).find("too large"), std::string::npos);
  EXPECT_NE(refused("object", 0, 0).find("at least 1"), std::string::npos);
  fs::create_symlink(folder / "object", folder / "link");
  EXPECT_NE(refused("link", 0, 1).find("cannot be opened"), std::string::npos);
  fs::create_directory(folder / "folder");
  EXPECT_NE(refused("folder", 0, 1), "");
  EXPECT_TRUE(memory->regions().empty());
}

TEST_F(SharedMemoryTest, WhatAClientDoesToItsObjectIsAnErrorAlone) {  // server#6914
  ASSERT_EQ(add({.name = "r", .key = "object", .offset = 0, .bytes = 128}), "");
  fs::resize_file(folder / "object", 10);
  EXPECT_EQ(read({.region = "r", .bytes = 4}), "xxxx");
  EXPECT_NE(read({.region = "r", .bytes = 11}).find("10 bytes"), std::string::npos);
  EXPECT_NE(write({.region = "r", .bytes = 11}, "0123456789a").find("10 bytes"), std::string::npos);
  EXPECT_EQ(fs::file_size(folder / "object"), 10U) << "it did not grow again";
  fs::remove(folder / "object");
  EXPECT_NE(read({.region = "r", .bytes = 1}).find("unlinked"), std::string::npos);
}

TEST_F(SharedMemoryTest, RegionsAreBounded) {
  ASSERT_EQ(add({.name = "a", .key = "object", .offset = 0, .bytes = 100}), "");
  EXPECT_NE(add({.name = "a", .key = "object", .offset = 0, .bytes = 1}).find("already"),
            std::string::npos);
  write_object("large", std::string(2000, 'z'));
  EXPECT_NE(add({.name = "b", .key = "large", .bytes = 901}).find("limits.shared_memory"),
            std::string::npos);
  ASSERT_EQ(add({.name = "b", .key = "large", .bytes = 900}), "");
  memory->remove("b");
  ASSERT_EQ(add({.name = "b", .key = "large", .bytes = 800}), "");
  ASSERT_EQ(add({.name = "c", .key = "large", .bytes = 10}), "");
  EXPECT_NE(add({.name = "d", .key = "large", .bytes = 10}).find("limit of 3"), std::string::npos);
  memory->remove("nothing");
  EXPECT_EQ(memory->regions().size(), 3U);
  memory->remove("");
  EXPECT_TRUE(memory->regions().empty());
}

TEST_F(SharedMemoryTest, RemovingARegionInUseIsSafe) {
  std::jthread user([&](const std::stop_token& stop) {
    std::array<std::byte, 64> out{};
    while (!stop.stop_requested()) {
      static_cast<void>(memory->read({.region = "r", .bytes = out.size()}, out));
    }
  });
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(add({.name = "r", .key = "object", .offset = 0, .bytes = 128}), "");
    memory->remove(i % 2 == 0 ? "r" : "");
  }
}

}  // namespace
}  // namespace baton::adapters
