#include <gtest/gtest.h>

#include "protocol/json/reader.h"
#include "protocol/server_config/keys.h"
#include "protocol/server_config/server_config_codec.h"

namespace baton::protocol::server_config {
namespace {

std::optional<std::string> environment(const std::string& name) {
  if (name == "PORT") return "9000";
  return std::nullopt;
}

std::string error_of(std::string_view text) {
  const auto parsed = parse_server_config(text, environment);
  if (parsed.has_value()) return "";
  return std::to_string(parsed.error().line) + ": " + parsed.error().message;
}

TEST(ServerConfig, ReadsValuesOfEveryType) {
  const auto config = parse_server_config(
      "version: 1\n"
      "repositories: [a, '${DIR:-b}']\n"
      "required_models: []\n"
      "unsupported: warn\n"
      "listen: {http: '${PORT}', grpc_enabled: false}\n"
      "limits:\n  body: 8MiB\n  timeout: 90s\n"
      "shutdown: {lame_duck: 250ms}\n",
      environment);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->repositories, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(config->required_models.has_value());
  EXPECT_TRUE(config->warn_unsupported);
  EXPECT_EQ(config->listen.http_port, 9000);
  EXPECT_FALSE(config->listen.grpc);
  EXPECT_EQ(config->limits.max_body_bytes, 8U << 20);
  EXPECT_EQ(config->limits.max_timeout, Duration::s(90));
  EXPECT_EQ(config->shutdown.lame_duck, Duration::ms(250));
}

TEST(ServerConfig, AnUnknownKeyIsAnErrorWithLineAndNearestMatch) {
  EXPECT_EQ(error_of("version: 1\nlisten:\n  htpp: 1\n"),
            "3: unknown key listen.htpp; the nearest is listen.http");
  EXPECT_EQ(error_of("version: 1\nzzzzzzzzzzzzzz: 1\n"), "2: unknown key zzzzzzzzzzzzzz");
}

TEST(ServerConfig, WrongValuesSayWhatWasExpected) {
  EXPECT_EQ(error_of("version: 1\nlisten: {http: 70000}\n"),
            "2: listen.http: expected an integer from 0 to 65535, found \"70000\"");
  EXPECT_EQ(error_of("version: 1\nunsupported: maybe\n"),
            "2: unsupported: expected one of refuse warn, found \"maybe\"");
  EXPECT_NE(error_of("version: 1\nlimits: {timeout: 5}\n"), "");
  EXPECT_NE(error_of("version: 1\nlimits: {body: 99999999TiB}\n"), "");
  EXPECT_NE(error_of("version: 1\nrepositories: x\n"), "");
  EXPECT_NE(error_of("version: 1\nlisten: 5\n"), "");
  EXPECT_NE(error_of("version: 1\nlisten: {host: '${NOPE}'}\n"), "");
  EXPECT_NE(error_of("version: 1\nlisten: {host: '${'}\n"), "");
  EXPECT_NE(error_of("version: 2\n"), "");
  EXPECT_NE(error_of("repositories: []\n"), "");
  EXPECT_NE(error_of("version: 1\nlog: {level: info}\nlog: {level: info}\n"), "");
  EXPECT_NE(error_of("version: [1\n"), "");
  EXPECT_NE(error_of(""), "");
}

std::string error_of_setting(std::string_view path, const std::string& text) {
  ServerConfig config;
  const auto applied = apply_setting(config, path, text);
  return applied.has_value() ? "" : applied.error();
}

TEST(ApplySetting, SetsOneKeyByTheFilesRules) {
  ServerConfig config;
  ASSERT_TRUE(apply_setting(config, "listen.http", "0").has_value());
  ASSERT_TRUE(apply_setting(config, "shutdown.lame_duck", "20ms").has_value());
  ASSERT_TRUE(apply_setting(config, "state_file", "${HOME}").has_value());
  EXPECT_EQ(config.listen.http_port, 0);
  EXPECT_EQ(config.shutdown.lame_duck, Duration::ms(20));
  EXPECT_EQ(config.state_file, "${HOME}");
}

TEST(ApplySetting, RefusesWhatTheFileRefuses) {
  EXPECT_EQ(error_of_setting("log.level", "loud"),
            "log.level: expected one of debug info warning error, found \"loud\"");
  EXPECT_EQ(error_of_setting("threads.workers", "4000000"),
            "threads.workers: expected an integer from 0 to 256, found \"4000000\"");
  EXPECT_EQ(error_of_setting("shutdown.lame_duck", "-5ms"),
            "shutdown.lame_duck: expected a time such as 250ms or 5s from 0ms to 24h, found "
            "\"-5ms\"");
  EXPECT_EQ(error_of_setting("limits.body", "1B"),
            "limits.body: expected a size such as 64MiB from 1KiB to 1TiB, found \"1B\"");
  EXPECT_NE(error_of_setting("repositories", "a"), "");
  EXPECT_NE(error_of_setting("log.loudness", "1"), "");
}

TEST(ServerConfig, TheSchemaIsJsonAndKnowsEveryKey) {
  json::JsonParser parser;
  const std::string schema = server_config_schema();
  EXPECT_TRUE(parser.parse_copy(schema, [](json::JsonValue&) { return true; }).has_value());
  for (const Key& key : all_keys()) {
    const std::string_view last = key.path.substr(key.path.find('.') + 1);
    EXPECT_NE(schema.find("\"" + std::string(last) + "\":"), std::string::npos) << key.path;
    EXPECT_NE(server_config_reference().find(key.path), std::string::npos);
  }
}

}  // namespace
}  // namespace baton::protocol::server_config
