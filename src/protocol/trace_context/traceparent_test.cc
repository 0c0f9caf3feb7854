#include "protocol/trace_context/traceparent.h"

#include <gtest/gtest.h>

namespace baton::protocol::trace_context {
namespace {

TEST(Traceparent, ReadsBackWhatItWrites) {
  const std::string text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const TraceContext trace = parse_traceparent(text);
  ASSERT_TRUE(trace.present());
  EXPECT_EQ(format_traceparent(trace), text);
}

TEST(Traceparent, AMalformedHeaderCountsAsNone) {
  for (const char* bad : {"", "00", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                          "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
                          "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                          "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                          "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x"}) {
    EXPECT_FALSE(parse_traceparent(bad).present()) << bad;
  }
}

}  // namespace
}  // namespace baton::protocol::trace_context
