#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <utility>

#include "app/bench_command.h"
#include "app/check_command.h"
#include "app/completion.h"
#include "app/config_file.h"
#include "app/models_command.h"
#include "app/server.h"
#include "app/sim_command.h"
#include "base/json_writer.h"
#include "domain/version.h"
#include "protocol/server_config/server_config_codec.h"

namespace baton::app {
namespace {

// A flag that stands for one key of the configuration file.
struct SettingFlag {
  const char* name;
  const char* path;
  const char* unit;  // of its number; the file's numbers bring theirs
  const char* help;
};
constexpr SettingFlag kOrtLibraryFlag = {"--ort-library", "ort_library", "",
                                         "Path of libonnxruntime.so"};
constexpr std::array<SettingFlag, 10> kServeFlags = {{
    {"--host", "listen.host", "", "Numeric address to listen on"},
    {"--http-port", "listen.http", "", "REST port; 0: a free one"},
    {"--grpc-port", "listen.grpc", "", "gRPC port; 0: a free one"},
    {"--metrics-port", "listen.metrics", "", "Metrics port; 0: a free one"},
    {"--access-log", "log.access", "", "Path of the access log; -: stdout"},
    {"--log-level", "log.level", "", "debug, info, warning or error"},
    {"--state-file", "state_file", "", "SQLite file that keeps measured curves"},
    {"--workers", "threads.workers", "", "Gateway workers"},
    {"--lame-duck-ms", "shutdown.lame_duck", "ms", "Serving time after SIGTERM"},
    {"--drain-ms", "shutdown.drain", "ms", "Time for what is in flight after that"},
}};

// What the command line says of the server's configuration; it goes over the file.
struct ConfigFlags {
  std::string file;
  std::vector<std::string> repositories;
  std::vector<std::pair<const SettingFlag*, std::string>> settings;
};

Result<ServerConfig, std::string> configuration(const ConfigFlags& flags) {
  ServerConfig config;
  if (!flags.file.empty()) {
    BATON_ASSIGN(config, read_config_file(flags.file));
  }
  if (!flags.repositories.empty()) config.repositories = flags.repositories;
  for (const auto& [flag, text] : flags.settings) {
    auto applied = protocol::server_config::apply_setting(config, flag->path, text + flag->unit);
    if (!applied.has_value()) return fail(std::string(flag->name) + ": " + applied.error());
  }
  if (config.repositories.empty()) {
    return fail(std::string("no model repository: name a folder, or `repositories:` in a file"));
  }
  return config;
}

void add_setting_flag(CLI::App& command, const SettingFlag& flag, ConfigFlags& flags) {
  command.add_option_function<std::string>(
      flag.name,
      [&flag, &flags](const std::string& text) { flags.settings.emplace_back(&flag, text); },
      flag.help);
}

void add_config_flags(CLI::App& command, ConfigFlags& flags) {
  command.add_option("repository", flags.repositories, "Folders of models");
  command.add_option("-c,--config", flags.file, "Configuration file (YAML)");
  add_setting_flag(command, kOrtLibraryFlag, flags);
}

void add_serve_flags(CLI::App& command, ConfigFlags& flags, std::string& ports_file) {
  add_config_flags(command, flags);
  command.add_option("--ports-file", ports_file, "Write the chosen ports there as JSON");
  for (const SettingFlag& flag : kServeFlags) add_setting_flag(command, flag, flags);
}

const std::map<std::string, double> kSeconds = {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};

void add_bench_flags(CLI::App& command, BenchOptions& options) {
  const auto time = [&](const char* name, double& seconds, const char* help) {
    command.add_option(name, seconds, help)->transform(CLI::AsNumberWithUnit(kSeconds));
  };
  command.add_option("model", options.model, "Its name")->required();
  auto* url = command.add_option("--url", options.url, "Numeric address of the REST port");
  command.add_option("--grpc", options.grpc, "Address of the gRPC port, instead")->excludes(url);
  command.add_option("--rate", options.rate, "Requests a second (100)")->check(CLI::PositiveNumber);
  command.add_option("--arrivals", options.arrivals,
                     "constant, poisson, or a CSV file with a column arrival_s");
  time("--duration", options.seconds, "How long is measured, such as 10s");
  time("--warmup", options.warmup_seconds, "Load before that, not counted");
  time("--objective", options.objective_seconds, "Goodput counts answers within it: 20ms");
  command.add_option("--connections", options.connections, "Connections")
      ->check(CLI::Range(1, 10'000));
  command
      .add_option("--outstanding", options.outstanding,
                  "Unanswered requests at most; more are not sent and count as failed")
      ->check(CLI::Range(1, 1'000'000));
  command.add_option("--shape", options.shapes, "Whole shape of an input: name=1,3,224,224");
  command.add_option("--rows", options.rows, "First dimension of inputs that leave it open")
      ->check(CLI::PositiveNumber);
  command.add_option("--seed", options.seed, "Of arrivals and data");
}

int complain(const std::string& sentence, int status) {
  std::fprintf(stderr, "baton: %s\n", sentence.c_str());
  return status;
}

int serve(const ConfigFlags& flags, const std::string& ports_file) {
  auto config = configuration(flags);
  if (!config.has_value()) return complain(config.error(), 2);
  auto status = run_server({std::move(*config), ports_file});
  return status.has_value() ? *status : complain(status.error().message, 1);
}

int check(const ConfigFlags& flags, bool as_json) {
  const auto config = configuration(flags);
  return config.has_value() ? run_check(*config, as_json) : complain(config.error(), 2);
}

int version(bool as_json) {
  std::string out = "baton " + std::string(kBatonVersion);
  if (as_json) {
    out.clear();
    JsonWriter(out).begin_object().field("version", kBatonVersion).end_object();
  }
  std::printf("%s\n", out.c_str());
  return 0;
}

CommandTree tree_of(const CLI::App& app) {
  CommandTree tree;
  tree.name = app.get_name();
  tree.help = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) tree.options.push_back("--" + name);
  }
  for (const CLI::App* child : app.get_subcommands({})) tree.commands.push_back(tree_of(*child));
  return tree;
}

int complete(const CLI::App& app, const std::string& shell) {
  const auto script = completion_script(tree_of(app), shell);
  if (!script) return complain("completion is made for bash, zsh and fish", 2);
  std::fputs(script->c_str(), stdout);
  return 0;
}

int describe_config(const std::string& what) {
  if (what == "schema") {
    std::fputs(protocol::server_config::server_config_schema().c_str(), stdout);
  } else if (what == "reference") {
    std::fputs(protocol::server_config::server_config_reference().c_str(), stdout);
  } else {
    return complain("say `schema` or `reference`", 2);
  }
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app("Keeps real-time inference inside its latency objectives.", "baton");
  app.require_subcommand(1);
  std::string output = "text";
  app.add_option("--output", output, "text or json")->check(CLI::IsMember({"text", "json"}));
  app.fallthrough();

  ConfigFlags flags;
  std::string ports_file;
  auto* serve_command = app.add_subcommand("serve", "Serve the models of repositories");
  add_serve_flags(*serve_command, flags, ports_file);
  auto* check_command = app.add_subcommand("check", "Check configuration and repositories");
  add_config_flags(*check_command, flags);

  std::string host = "127.0.0.1";
  uint16_t metrics_port = 8002;
  auto* models_command = app.add_subcommand("models", "List the models of a running baton");
  models_command->add_option("--host", host, "Its address");
  models_command->add_option("--metrics-port", metrics_port, "Its metrics port");

  BenchOptions bench;
  auto* bench_command = app.add_subcommand("bench", "Send open-loop load to a server");
  add_bench_flags(*bench_command, bench);

  SimOptions sim;
  auto* sim_command = app.add_subcommand("sim", "Simulate on a virtual clock");
  auto* sim_run = sim_command->add_subcommand("run", "Run one scenario");
  sim_command->require_subcommand(1);
  sim_run->add_option("--scenario", sim.scenario, "Its name");
  sim_run->add_option("--seed", sim.seed, "Seed of workload, faults and policy");
  sim_run->add_option("--duration", sim.seconds, "Simulated time, such as 600s")
      ->transform(CLI::AsNumberWithUnit(kSeconds));
  sim_run->add_option("--fault", sim.fault, "A planted fault that the run must find");
  sim_run->add_option("--decisions", sim.decisions, "Write the decision log there");
  std::string decision_log;
  auto* sim_replay = sim_command->add_subcommand(
      "replay", "Decide a decision log again and compare: 0 equal, 1 differs, 3 incomplete");
  sim_replay->add_option("file", decision_log, "The log, live or simulated")->required();

  std::string what;
  auto* config_command = app.add_subcommand("config", "Describe the configuration file");
  config_command->add_option("what", what, "schema or reference")->required();
  std::string shell;
  auto* completion_command = app.add_subcommand("completion", "Print a shell's completion script");
  completion_command->add_option("shell", shell, "bash, zsh or fish")->required();
  auto* version_command = app.add_subcommand("version", "Print the version");

  CLI11_PARSE(app, argc, argv);
  const bool as_json = output == "json";
  if (serve_command->parsed()) return serve(flags, ports_file);
  if (check_command->parsed()) return check(flags, as_json);
  if (models_command->parsed()) return run_models(host, metrics_port, as_json);
  bench.as_json = as_json;
  if (bench_command->parsed()) return run_bench(bench);
  if (config_command->parsed()) return describe_config(what);
  if (completion_command->parsed()) return complete(app, shell);
  if (version_command->parsed()) return version(as_json);
  if (sim_replay->parsed()) return run_replay(decision_log, as_json);
  sim.as_json = as_json;
  return run_sim(sim);
}

}  // namespace
}  // namespace baton::app

int main(int argc, char** argv) {
  return baton::app::run(argc, argv);
}
