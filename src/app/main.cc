#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>

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

// What the command line says of the server's configuration; it goes over the file.
struct ConfigFlags {
  std::string file;
  std::vector<std::string> repositories;
  std::optional<std::string> host, ort_library, access_log, log_level, state_file;
  std::optional<uint16_t> http_port, grpc_port, metrics_port;
  std::optional<uint32_t> workers;
  std::optional<int64_t> lame_duck_ms, drain_ms;
};

template <class T, class U>
void apply(const std::optional<T>& flag, U& value) {
  if (flag) value = *flag;
}

Result<ServerConfig, std::string> configuration(const ConfigFlags& flags) {
  ServerConfig config;
  if (!flags.file.empty()) {
    BATON_ASSIGN(config, read_config_file(flags.file));
  }
  if (!flags.repositories.empty()) config.repositories = flags.repositories;
  apply(flags.host, config.listen.host);
  apply(flags.http_port, config.listen.http_port);
  apply(flags.grpc_port, config.listen.grpc_port);
  apply(flags.metrics_port, config.listen.metrics_port);
  apply(flags.ort_library, config.ort_library);
  apply(flags.access_log, config.log.access);
  apply(flags.log_level, config.log.level);
  apply(flags.state_file, config.state_file);
  apply(flags.workers, config.workers);
  if (flags.lame_duck_ms) config.shutdown.lame_duck = Duration::ms(*flags.lame_duck_ms);
  if (flags.drain_ms) config.shutdown.drain = Duration::ms(*flags.drain_ms);
  if (config.repositories.empty()) {
    return fail(std::string("no model repository: name a folder, or `repositories:` in a file"));
  }
  return config;
}

void add_config_flags(CLI::App& command, ConfigFlags& flags) {
  command.add_option("repository", flags.repositories, "Folders of models");
  command.add_option("-c,--config", flags.file, "Configuration file (YAML)");
  command.add_option("--ort-library", flags.ort_library, "Path of libonnxruntime.so");
}

void add_serve_flags(CLI::App& command, ConfigFlags& flags, std::string& ports_file) {
  add_config_flags(command, flags);
  command.add_option("--host", flags.host, "Numeric address to listen on");
  command.add_option("--http-port", flags.http_port, "REST port; 0: a free one");
  command.add_option("--grpc-port", flags.grpc_port, "gRPC port; 0: a free one");
  command.add_option("--metrics-port", flags.metrics_port, "Metrics port; 0: a free one");
  command.add_option("--ports-file", ports_file, "Write the chosen ports there as JSON");
  command.add_option("--access-log", flags.access_log, "Path of the access log; -: stdout");
  command.add_option("--log-level", flags.log_level, "debug, info, warning or error");
  command.add_option("--state-file", flags.state_file, "SQLite file that keeps measured curves");
  command.add_option("--workers", flags.workers, "Gateway workers");
  command.add_option("--lame-duck-ms", flags.lame_duck_ms, "Serving time after SIGTERM");
  command.add_option("--drain-ms", flags.drain_ms, "Time for what is in flight after that");
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
  sim.as_json = as_json;
  return run_sim(sim);
}

}  // namespace
}  // namespace baton::app

int main(int argc, char** argv) {
  return baton::app::run(argc, argv);
}
