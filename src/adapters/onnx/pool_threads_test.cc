#include "adapters/onnx/pool_threads.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <future>
#include <vector>

namespace baton::adapters::onnx {
namespace {

// Sanitizers reserve more address space than a limit could leave.
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
void wait_for(void* argument) {
  static_cast<std::shared_future<void>*>(argument)->wait();
}

TEST(PoolThreads, SaysWhenThereAreNoMoreThreads) {
  PoolThreads threads;
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit none{.rlim_cur = 1, .rlim_max = before.rlim_max};
  std::vector<OrtCustomThreadHandle> made;
  made.reserve(64);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &none), 0);
  bool refused = false;
  // The first ones may get stacks that ended threads have left.
  while (!refused && made.size() < 64) {
    OrtCustomThreadHandle handle = PoolThreads::create(&threads, wait_for, &released);
    refused = handle == nullptr;
    if (!refused) made.push_back(handle);
  }
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_TRUE(refused);
  OrtCustomThreadHandle again = PoolThreads::create(&threads, wait_for, &released);
  ASSERT_NE(again, nullptr);
  made.push_back(again);
  release.set_value();
  for (OrtCustomThreadHandle handle : made) PoolThreads::join(handle);
}
#endif

}  // namespace
}  // namespace baton::adapters::onnx
