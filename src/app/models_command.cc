#include "app/models_command.h"

#include <cstdio>
#include <vector>

#include "app/http_get.h"
#include "protocol/json/reader.h"

namespace baton::app {
namespace {

using protocol::json::JsonValue;

struct Point {
  uint64_t batch = 0;
  double us = 0;
};

struct Version {
  int64_t number = 0;
  std::string state;
  std::string reason;
  uint64_t max_batch_size = 0;
  uint64_t queued = 0;
  uint64_t items = 0;
  uint64_t executions = 0;
  std::vector<Point> curve;
};

bool read_curve(JsonValue& array, std::vector<Point>& curve) {
  return array.each_element([&](JsonValue& element) {
    Point point;
    const bool ok = element.each_field([&](std::string_view key, JsonValue& value) {
      if (key == "batch") return value.read_uint64(point.batch);
      if (key == "us") return value.read_double(point.us);
      return true;
    });
    curve.push_back(point);
    return ok;
  });
}

bool read_version(JsonValue& object, Version& version) {
  return object.each_field([&](std::string_view key, JsonValue& value) {
    if (key == "version") return value.read_int64(version.number);
    if (key == "state") return value.read_string(version.state);
    if (key == "reason") return value.read_string(version.reason);
    if (key == "max_batch_size") return value.read_uint64(version.max_batch_size);
    if (key == "queued") return value.read_uint64(version.queued);
    if (key == "items") return value.read_uint64(version.items);
    if (key == "executions") return value.read_uint64(version.executions);
    if (key == "curve") return read_curve(value, version.curve);
    return true;
  });
}

void print_version(const std::string& model, const Version& version) {
  std::printf("%-24s %-8ld %-8s batch<=%-4lu queued %-5lu items %-10lu runs %lu\n", model.c_str(),
              version.number, version.state.c_str(), version.max_batch_size, version.queued,
              version.items, version.executions);
  if (!version.reason.empty()) std::printf("    %s\n", version.reason.c_str());
  if (version.curve.empty()) return;
  std::printf("    time by batch size, µs:");
  for (const Point& point : version.curve) std::printf("  %lu: %.0f", point.batch, point.us);
  std::printf("\n");
}

bool print_model(JsonValue& object) {
  std::string name;
  std::string reason;
  std::vector<Version> versions;
  const bool ok = object.each_field([&](std::string_view key, JsonValue& value) {
    if (key == "name") return value.read_string(name);
    if (key == "reason") return value.read_string(reason);
    if (key != "versions") return true;
    return value.each_element([&](JsonValue& element) {
      versions.emplace_back();
      return read_version(element, versions.back());
    });
  });
  if (!reason.empty()) std::printf("%-24s -        failed\n    %s\n", name.c_str(), reason.c_str());
  for (const Version& version : versions) print_version(name, version);
  return ok;
}

}  // namespace

int run_models(const ModelsOptions& options) {
  const auto body =
      http_get(options.host, options.metrics_port, "/models", Duration::s(10), options.api_key);
  if (!body.has_value()) {
    std::fprintf(stderr, "baton: %s\n", body.error().c_str());
    return 1;
  }
  if (options.as_json) {
    std::printf("%s\n", body->c_str());
    return 0;
  }
  protocol::json::JsonParser parser;
  const auto parsed = parser.parse_copy(*body, [](JsonValue& root) {
    return root.each_element([](JsonValue& model) { return print_model(model); });
  });
  if (!parsed.has_value()) {
    std::fprintf(stderr, "baton: what answered is no baton: %s\n", parsed.error().message.c_str());
    return 1;
  }
  return 0;
}

}  // namespace baton::app
