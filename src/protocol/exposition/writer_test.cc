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

TEST(Exposition, WritesOpenMetrics) {
  std::string out;
  Writer writer(out, Format::kOpenMetrics);
  writer.family("a_total", "counter", "Things.");
  writer.sample({}, uint64_t{3});
  writer.family("nv_count", "counter", "Others.");
  writer.sample({}, uint64_t{4});
  writer.family("b_seconds", "histogram", "Time.");
  const std::array<double, 2> bounds = {0.1, 10};
  const std::array<uint64_t, 3> buckets = {1, 2, 4};
  writer.histogram({}, {bounds, buckets, 2.5});
  writer.finish();
  EXPECT_EQ(out,
            "# HELP a Things.\n# TYPE a counter\na_total 3\n"
            "# HELP nv_count Others.\n# TYPE nv_count unknown\nnv_count 4\n"
            "# HELP b_seconds Time.\n# TYPE b_seconds histogram\n"
            "b_seconds_bucket{le=\"0.1\"} 1\nb_seconds_bucket{le=\"10.0\"} 3\n"
            "b_seconds_bucket{le=\"+Inf\"} 7\nb_seconds_sum 2.5\nb_seconds_count 7\n# EOF\n");
}

TEST(ChooseFormat, IsOpenMetricsWhereThatIsAskedFor) {
  for (const char* accept :
       {"application/openmetrics-text", "application/openmetrics-text; version=1.0.0",
        "Application/OpenMetrics-Text;VERSION=\"1.0.0\"",
        "text/plain;q=0.5, application/openmetrics-text;q=0.5",
        "*/*, text/*;q=0.5, application/openmetrics-text;q=0.7",
        // what Prometheus sends
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
        "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,"
        "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"}) {
    EXPECT_EQ(choose_format(accept), Format::kOpenMetrics) << accept;
  }
  for (const char* accept :
       {"", "*/*", "text/plain", "application/*", "application/openmetrics-text;q=0",
        "application/openmetrics-text;version=0.0.1", "application/openmetrics-text;q=x",
        "text/plain, application/openmetrics-text;q=0.9", "*/*, application/openmetrics-text;q=0.9",
        ";,;=,q=1", "\"", "text/html;q"}) {
    EXPECT_EQ(choose_format(accept), Format::kText) << accept;
  }
}

}  // namespace
}  // namespace baton::protocol::exposition
