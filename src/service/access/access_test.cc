#include <gtest/gtest.h>

#include <vector>

#include "ports/testing/manual_clock.h"
#include "service/access/access_control.h"
#include "service/access/access_log.h"

namespace baton::service {
namespace {

class Lines final : public ports::LogSink {
 public:
  void write(std::string_view line) override { lines.emplace_back(line); }
  std::vector<std::string> lines;
};

TEST(AccessLog, WritesOneJsonLineWithTheEndReason) {
  ports::testing::ManualClock clock;
  Lines lines;
  AccessLog log(clock, &lines);
  RequestContext context;
  context.id = RequestId(7);
  context.client_id = "a\"b";
  context.arrival = Instant::from_ns(1'000);
  context.trace.trace_id[15] = 0xab;
  log.write({.context = &context,
             .model = "m",
             .version = 2,
             .items = 3,
             .reason = EndReason::kQueueFull,
             .message = "full",
             .timings = {},
             .ended = Instant::from_ns(2'501'000)});
  ASSERT_EQ(lines.lines.size(), 1U);
  const std::string& line = lines.lines[0];
  EXPECT_NE(line.find(R"("request":7,"client_id":"a\"b","protocol":"internal")"),
            std::string::npos);
  EXPECT_NE(line.find(R"("version":2,"end_reason":"queue_full","message":"full")"),
            std::string::npos);
  EXPECT_NE(line.find(R"("total_us":2500,"trace_id":"000000000000000000000000000000ab"})"),
            std::string::npos);
}

TEST(AccessLog, HeadersStandBehindTheRest) {
  ports::testing::ManualClock clock;
  Lines lines;
  AccessLog log(clock, &lines);
  RequestContext context;
  ForwardedHeaders headers{.headers = {{"x-a", "1\"\n"}, {"x-b", ""}}};
  context.headers = std::make_shared<ForwardedHeaders>(headers);
  log.write({.context = &context, .model = "m", .message = {}, .timings = {}, .ended = {}});
  headers = {.headers = {}, .cut = true};
  for (size_t i = 0; i < kMostForwardedHeaders; ++i) {
    headers.headers.push_back({std::string(64, 'n'), std::string(256, '\x01')});
  }
  context.headers = std::make_shared<ForwardedHeaders>(headers);
  log.write({.context = &context, .model = "m", .message = {}, .timings = {}, .ended = {}});
  ASSERT_EQ(lines.lines.size(), 2U);
  EXPECT_TRUE(lines.lines[0].ends_with(R"(,"headers":{"x-a":"1\"\n","x-b":""}})"));
  EXPECT_TRUE(lines.lines[1].ends_with("\\u0001\"},\"headers_cut\":true}"));
  EXPECT_GT(lines.lines[1].size(), 16U * 256U * 6U);
}

TEST(AccessLog, LongTextsThatAreEscapedFit) {
  ports::testing::ManualClock clock;
  Lines lines;
  AccessLog log(clock, &lines);
  RequestContext context;
  context.tenant = std::string(1000, '\x01');
  log.write({.context = &context,
             .model = std::string(2000, '"'),
             .message = "\xff",
             .timings = {},
             .ended = {}});
  context.tenant = "t";
  log.write({.context = &context, .model = "m", .message = {}, .timings = {}, .ended = {}});
  ASSERT_EQ(lines.lines.size(), 2U);
  EXPECT_NE(lines.lines[0].find("\\u0001\\u0001\",\"class\":\""), std::string::npos);
  EXPECT_GT(lines.lines[0].size(), 10'000U);
  EXPECT_NE(lines.lines[1].find("\"tenant\":\"t\",\"class\""), std::string::npos);
  EXPECT_EQ(lines.lines[1].back(), '}');
}

TEST(AccessLog, WithoutASinkNothingIsWritten) {
  ports::testing::ManualClock clock;
  AccessLog log(clock, nullptr);
  log.write({});
}

TEST(AccessControl, TakesTheKeyInEitherHeader) {
  const AccessControl access({{"k1", "alice"}, {"k2", "bob"}});
  EXPECT_FALSE(access.refuse("Bearer k1", std::nullopt).has_value());
  EXPECT_FALSE(access.refuse(std::nullopt, "k2").has_value());
  for (const char* scheme : {"bearer", "BEARER", "bEaReR"}) {
    EXPECT_FALSE(access.refuse(std::string(scheme) + " k1", std::nullopt).has_value()) << scheme;
  }
  EXPECT_EQ(access.tenant_of(std::nullopt, "k2"), "bob");
  for (const char* wrong : {"", "Bearer ", "Bearer k3", "k1", "Basic k1", "bearer", "bearerk1"}) {
    EXPECT_EQ(access.refuse(wrong, std::nullopt)->reason, EndReason::kUnauthorized) << wrong;
  }
  EXPECT_TRUE(access.refuse(std::nullopt, std::nullopt).has_value());
}

}  // namespace
}  // namespace baton::service
