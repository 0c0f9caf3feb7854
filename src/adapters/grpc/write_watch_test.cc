#include "adapters/grpc/write_watch.h"

#include <gtest/gtest.h>

#include "ports/testing/virtual_loop.h"

namespace baton::adapters::grpc_api {
namespace {

class Answer final : public WatchedWrite, public std::enable_shared_from_this<Answer> {
 public:
  int cuts = 0;

 private:
  std::shared_ptr<WatchedWrite> keep() override { return shared_from_this(); }
  void cut_off() override { ++cuts; }
};

class WriteWatchTest : public testing::Test {
 protected:
  std::shared_ptr<Answer> watch(size_t bytes) {
    auto answer = std::make_shared<Answer>();
    watch_->watch(*answer, bytes);
    return answer;
  }

  ports::testing::VirtualLoop loop_;
  std::atomic<uint64_t> stalls_{0};
  std::shared_ptr<WriteWatch> watch_ =
      std::make_shared<WriteWatch>(loop_, loop_, Duration::ms(100), &stalls_);
};

TEST_F(WriteWatchTest, CutsOffWhatIsNotTakenWhateverItsSize) {
  const auto small = watch(10);
  const auto large = watch(3 << 20);
  loop_.run_for(Duration::ms(99));
  EXPECT_EQ(small->cuts, 0);
  loop_.run_for(Duration::ms(1));
  EXPECT_EQ(small->cuts, 1);
  EXPECT_EQ(large->cuts, 0);
  loop_.run_for(Duration::ms(299));
  EXPECT_EQ(large->cuts, 0);
  loop_.run_for(Duration::ms(26));
  EXPECT_EQ(large->cuts, 1);
  EXPECT_EQ(stalls_, 2U);
  watch_->sent(*small);
  watch_->sent(*large);
  loop_.run_for(Duration::s(1));
  EXPECT_EQ(stalls_, 2U);
}

TEST_F(WriteWatchTest, LeavesAloneAndForgetsWhatIsTaken) {
  std::weak_ptr<Answer> gone;
  {
    const auto first = watch(10);
    const auto second = watch(10);
    const auto third = watch(10);
    watch_->sent(*second);
    watch_->sent(*first);
    watch_->sent(*third);
    gone = first;
  }
  EXPECT_TRUE(gone.expired());
  auto early = std::make_shared<Answer>();
  watch_->sent(*early);
  watch_->watch(*early, 10);
  loop_.run_for(Duration::s(1));
  EXPECT_EQ(early->cuts, 0);
  EXPECT_EQ(stalls_, 0U);
}

TEST_F(WriteWatchTest, IsNotLateForASmallAnswerBehindALargeOne) {
  const auto large = watch(64 << 20);
  loop_.run_for(Duration::ms(150));
  const auto small = watch(10);
  loop_.run_for(Duration::ms(125));
  EXPECT_EQ(small->cuts, 1);
  EXPECT_EQ(large->cuts, 0);
}

TEST_F(WriteWatchTest, MayEndBeforeItsTimer) {
  static_cast<void>(watch(10));
  watch_.reset();
  loop_.run_for(Duration::s(1));
  EXPECT_EQ(stalls_, 0U);
}

}  // namespace
}  // namespace baton::adapters::grpc_api
