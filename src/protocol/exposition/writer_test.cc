#include "protocol/exposition/writer.h"

#include <gtest/gtest.h>

#include <array>

namespace baton::protocol::exposition {
namespace {

TEST(Exposition, WritesFamiliesLabelsAndCumulativeHistograms) {
  std::string out;
  Writer writer(out);
  writer.family("a_total", "counter", "Things.");
  const std::array<Label, 1> labels = {{{"model", "m\"\\\n"}}};
  writer.sample(labels, uint64_t{3});
  writer.family("b_seconds", "histogram", "Time.");
  const std::array<double, 2> bounds = {0.1, 1};
  const std::array<uint64_t, 3> buckets = {1, 2, 4};
  writer.histogram({}, {bounds, buckets, 2.5});
  EXPECT_EQ(out,
            "# HELP a_total Things.\n# TYPE a_total counter\na_total{model=\"m\\\"\\\\\\n\"} 3\n"
            "# HELP b_seconds Time.\n# TYPE b_seconds histogram\n"
            "b_seconds_bucket{le=\"0.1\"} 1\nb_seconds_bucket{le=\"1\"} 3\n"
            "b_seconds_bucket{le=\"+Inf\"} 7\nb_seconds_sum 2.5\nb_seconds_count 7\n");
}

}  // namespace
}  // namespace baton::protocol::exposition
