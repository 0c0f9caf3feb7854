#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

#include "app/bench_command.h"
#include "app/check_command.h"
#include "app/config_file.h"
#include "app/infer_command.h"
#include "app/models_command.h"
#include "app/optimize_command.h"
#include "app/server.h"
#include "app/sim_command.h"
#include "base/json_writer.h"
#include "domain/version.h"
#include "protocol/command_line/command_tree.h"
#include "protocol/decision_log/decision_log.h"
#include "protocol/oip/errors_reference.h"
#include "protocol/server_config/server_config_codec.h"
#include "service/telemetry/metric_table.h"

namespace baton::app {
namespace {

namespace command_line = protocol::command_line;
using command_line::CommandTree;
using command_line::OptionText;

// A flag that stands for one key of the configuration file.
struct SettingFlag {
  const char* name;
  const char* path;
  const char* unit;  // of its number; the file's numbers bring theirs
  const char* help;
};
constexpr SettingFlag kOrtLibraryFlag = {"--ort-library", "ort_library", "",
                                         "Path of libonnxruntime.so"};
constexpr std::array<SettingFlag, 13> kServeFlags = {{
    {"--repository-control", "repository.control", "",
     "Who says what is served: none, explicit, poll"},
    {"--poll-every-ms", "repository.poll_every", "ms",
     "With poll: how often folders are looked at"},
    {"--settle-ms", "repository.settle", "ms", "With poll: how long a folder must be unchanged"},
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
  std::vector<std::string> startup_models;
  std::vector<std::pair<const SettingFlag*, std::string>> settings;
};

Result<ServerConfig, std::string> configuration(const ConfigFlags& flags) {
  ServerConfig config;
  if (!flags.file.empty()) {
    BATON_ASSIGN(config, read_config_file(flags.file));
  }
  if (!flags.repositories.empty()) config.repositories = flags.repositories;
  if (!flags.startup_models.empty()) config.repository.startup_models = flags.startup_models;
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
  command
      .add_option("--load-model", flags.startup_models,
                  "With explicit: a model to load at the start, repeated; *: all")
      ->expected(1)
      ->take_all();
  command.add_option("--ports-file", ports_file, "Write the chosen ports there as JSON");
  for (const SettingFlag& flag : kServeFlags) add_setting_flag(command, flag, flags);
}

const std::map<std::string, double> kSeconds = {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
constexpr double kMostSeconds = 1e8;  // three years

// Of a number of seconds; the complaint, or nothing.
std::string is_time(const std::string& seconds) {
  double number = -1;
  if (CLI::detail::lexical_cast(seconds, number) && number >= 0 && number <= kMostSeconds)
    return "";
  return "a time is from 0s to 1e8s";
}

void add_bench_flags(CLI::App& command, BenchOptions& options) {
  const auto time = [&](const char* name, double& seconds, const char* help) {
    command.add_option(name, seconds, help)
        ->transform(CLI::AsNumberWithUnit(kSeconds))
        ->check(is_time);
  };
  command.add_option("model", options.model, "Its name")->required();
  auto* url = command.add_option("--url", options.url, "Numeric address of the REST port");
  command.add_option("--grpc", options.grpc, "Address of the gRPC port, instead")->excludes(url);
  command.add_option("--rate", options.rate, "Requests a second (100)")->check(CLI::PositiveNumber);
  command.add_option("--arrivals", options.arrivals,
                     "constant, poisson, or a CSV file with a column arrival_s");
  time("--duration", options.seconds, "How long is measured, such as 10s; without a unit: seconds");
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

void add_infer_flags(CLI::App& command, InferOptions& options) {
  command.add_option("model", options.model, "Its name")->required();
  command.add_option("--model-version", options.version, "A version (the highest ready one)")
      ->check(CLI::PositiveNumber);
  command.add_option("--url", options.url, "Numeric address of the REST port");
  command.add_option("--json", options.json,
                     "A request of the protocol, or {\"input\": nested arrays}: a file, the text "
                     "itself, or - for the standard input");
  command.add_option("--input", options.inputs, "An input from a file: name=file.npy")
      ->allow_extra_args(false);  // the model's name may follow
  auto* zeros = command.add_flag("--zeros", options.zeros, "Make the other inputs of zeros");
  command.add_flag("--random", options.random, "Make the other inputs at random")->excludes(zeros);
  command
      .add_option("--shape", options.shapes,
                  "Whole shape of such an input: name=1,3,224,224; without it open dimensions "
                  "are 1")
      ->allow_extra_args(false);
  command.add_option("--seed", options.seed, "Of --random");
  command.add_option("--save", options.save, "A folder for the outputs as .npy files");
  command.add_option("--timeout", options.timeout_seconds, "How long the server may stay silent")
      ->transform(CLI::AsNumberWithUnit(kSeconds))
      ->check(is_time);
  command.add_option("--api-key", options.api_key, "A key, where it wants one")
      ->envname("BATON_API_KEY");
}

void add_optimize_flags(CLI::App& command, OptimizeOptions& options, ConfigFlags& flags) {
  command.add_option("model", options.model, "Its name")->required();
  command.add_option("repository", flags.repositories, "Folders of models");
  command.add_option("-c,--config", flags.file, "Configuration file (YAML) that names them");
  command.add_option("--to", options.kind, "fp16, or int8: matrices, dynamically")
      ->required()
      ->check(CLI::IsMember({"fp16", "int8"}));
  command.add_option("--model-version", options.version, "A version (the highest)")
      ->check(CLI::PositiveNumber);
  command.add_option("--inputs", options.inputs,
                     "Recorded inputs: a folder of .npz files, each a request");
  command
      .add_option("--shape", options.shapes,
                  "Without them, whole shape of an input: name=1,3,224,224; without it open "
                  "dimensions are 1")
      ->allow_extra_args(false);
  command
      .add_option("--max-difference", options.most_difference,
                  "Make nothing when an output differs by more, as a share of its largest value")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--out", options.out, "A repository for what is made (the model's own)");
  command.add_option("--python", options.python, "A Python with onnx and onnxruntime")
      ->envname("BATON_PYTHON");
  command.add_option("--seed", options.seed, "Of inputs that are made up");
  command.add_flag("--replace", options.replace, "What was made before may go");
}

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int complain(const std::string& sentence, int status) {
  std::fprintf(stderr, "baton: %s\n", sentence.c_str());
  return status;
}

int serve(const ConfigFlags& flags, const std::string& ports_file) {
  auto config = configuration(flags);
  if (!config.has_value()) return complain(config.error(), kUsage);
  ServeOptions options{std::move(*config), ports_file};
  options.reread = [&flags] { return configuration(flags); };
  auto status = run_server(options);
  return status.has_value() ? *status : complain(status.error().message, kFailed);
}

int check(const ConfigFlags& flags, bool as_json) {
  const auto config = configuration(flags);
  return config.has_value() ? run_check(*config, as_json) : complain(config.error(), kUsage);
}

int optimize(OptimizeOptions options, const ConfigFlags& flags) {
  const auto config = configuration(flags);
  if (!config.has_value()) return complain(config.error(), kUsage);
  options.repositories = config->repositories;
  return run_optimize(options);
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

OptionText text_of(const CLI::Option& option) {
  OptionText text;
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  if (text.names.empty()) {
    text.value = option.get_name(true);
  } else if (option.get_expected_max() > 0 && option.get_items_expected_max() > 0) {
    text.value = option.get_type_name().substr(0, option.get_type_name().find(':'));
  }
  text.help = option.get_description();
  // Zero and nothing stand for what `help` says.
  const std::string fallback = option.get_default_str();
  if (fallback != "0" && fallback != "[]") text.fallback = fallback;
  text.required = option.get_required();
  return text;
}

CommandTree tree_of(const CLI::App& app) {
  CommandTree tree;
  tree.name = app.get_name();
  tree.help = app.get_description();
  tree.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    if (option != app.get_help_ptr()) tree.options.push_back(text_of(*option));
  }
  for (const CLI::App* child : app.get_subcommands({})) tree.commands.push_back(tree_of(*child));
  return tree;
}

int complete(const CLI::App& app, const std::string& shell) {
  const auto script = command_line::completion_script(tree_of(app), shell);
  if (!script) return complain("completion is made for bash, zsh and fish", kUsage);
  std::fputs(script->c_str(), stdout);
  return 0;
}

int describe_config(const std::string& what) {
  if (what == "schema") {
    std::fputs(protocol::server_config::server_config_schema().c_str(), stdout);
  } else if (what == "reference") {
    std::fputs(protocol::server_config::server_config_reference().c_str(), stdout);
  } else {
    return complain("say `schema` or `reference`", kUsage);
  }
  return 0;
}

// A page of docs/ that is generated from the code.
int print_reference(const CLI::App& app, const std::string& page) {
  if (page == "configuration") return describe_config("reference");
  std::string text;
  if (page == "command-line") text = command_line::command_line_reference(tree_of(app));
  if (page == "man") text = command_line::man_page(tree_of(app), std::string(kBatonVersion));
  if (page == "metrics") text = service::metrics_reference();
  if (page == "errors") text = protocol::oip::errors_reference();
  if (page == "decisions") text = protocol::decision_log::decision_log_reference();
  std::fputs(text.c_str(), stdout);
  return 0;
}

// Each command with what it does once the whole line has been read.
class CommandLine {
 public:
  CommandLine();
  int run(int argc, char** argv);

 private:
  CLI::App* add(CLI::App& parent, const char* name, const char* help, std::function<int()> action) {
    CLI::App* command = parent.add_subcommand(name, help);
    actions_.emplace_back(command, std::move(action));
    return command;
  }
  void add_serving();
  void add_clients();
  void add_offline();
  void add_simulation();
  void add_descriptions();
  [[nodiscard]] bool as_json() const { return output_ == "json"; }

  CLI::App app_{"Keeps real-time inference inside its latency objectives.", "baton"};
  std::vector<std::pair<CLI::App*, std::function<int()>>> actions_;
  std::string output_ = "text";
  ConfigFlags flags_;
  std::string ports_file_;
  ModelsOptions models_;
  InferOptions infer_;
  OptimizeOptions optimize_;
  BenchOptions bench_;
  SimOptions sim_;
  std::string file_;
  std::string what_;
};

CommandLine::CommandLine() {
  app_.require_subcommand(1);
  app_.option_defaults()->always_capture_default();
  app_.add_option("--output", output_, "text or json")->check(CLI::IsMember({"text", "json"}));
  app_.fallthrough();
  add_serving();
  add_clients();
  add_offline();
  add_simulation();
  add_descriptions();
  app_.footer("Exit status: 0 done; 1 failed; 2 the command line or the configuration is wrong.");
}

void CommandLine::add_serving() {
  CLI::App* serve_command = add(app_, "serve", "Serve the models of repositories",
                                [this] { return serve(flags_, ports_file_); });
  add_serve_flags(*serve_command, flags_, ports_file_);
  serve_command->footer(
      "A flag goes over the file, whose keys have the defaults. Exit status: 0 after SIGTERM or "
      "SIGINT in order; 1 it did not start; 2 the configuration is "
      "wrong; 3 the end took longer than `shutdown.*` allow; 143 or 130 a second SIGTERM or SIGINT "
      "ended it at once.");
  CLI::App* check_command = add(app_, "check", "Check configuration and repositories",
                                [this] { return check(flags_, as_json()); });
  add_config_flags(*check_command, flags_);
  check_command->footer(
      "Exit status: 0 every model would load; 1 one would not, or the repositories or ONNX Runtime "
      "cannot be opened; 2 the configuration is wrong.");
}

void CommandLine::add_clients() {
  CLI::App* models_command = add(app_, "models", "List the models of a running baton", [this] {
    models_.as_json = as_json();
    return run_models(models_);
  });
  models_command->add_option("--host", models_.host, "Its address");
  models_command->add_option("--metrics-port", models_.metrics_port, "Its metrics port");
  models_command->add_option("--api-key", models_.api_key, "A key, where it wants one")
      ->envname("BATON_API_KEY");
  models_command->footer("Exit status: 0 listed; 1 it does not answer.");
  CLI::App* bench_command = add(app_, "bench", "Send open-loop load to a server", [this] {
    bench_.as_json = as_json();
    return run_bench(bench_);
  });
  add_bench_flags(*bench_command, bench_);
  bench_command->footer(
      "Exit status: 0 every request was answered; 1 one failed, or the server does not answer; 2 "
      "an "
      "option is wrong.");
  CLI::App* infer_command = add(app_, "infer", "Call a model of a running server", [this] {
    infer_.as_json = as_json();
    return run_infer(infer_);
  });
  add_infer_flags(*infer_command, infer_);
  infer_command->footer(
      "Prints each output's name, type, shape and first elements; with `--output json` what the "
      "server answers. Exit status: 0 answered; 1 the server refuses or does not answer, or the "
      "outputs cannot be saved; 2 an option or a file is wrong.");
}

void CommandLine::add_offline() {
  CLI::App* command = add(app_, "optimize", "Make a smaller or faster form of a model", [this] {
    optimize_.as_json = as_json();
    return optimize(optimize_, flags_);
  });
  add_optimize_flags(*command, optimize_, flags_);
  command->footer(
      "Makes the model MODEL_fp16 or MODEL_int8 by ONNX Runtime's own tools and prints size, speed "
      "and accuracy beside the original's, on one CPU thread. Inputs and outputs keep their types; "
      "the original is not touched. Exit status: 0 made; 1 it cannot be made, or differs too much; "
      "2 an option or a file is wrong.");
}

void CommandLine::add_simulation() {
  CLI::App* sim_command = app_.add_subcommand("sim", "Simulate on a virtual clock");
  sim_command->require_subcommand(1);
  CLI::App* run_command = add(*sim_command, "run", "Run one scenario", [this] {
    sim_.as_json = as_json();
    return run_sim(sim_);
  });
  run_command->add_option("--scenario", sim_.scenario, "Its name");
  run_command->add_option("--seed", sim_.seed, "Seed of workload, faults and policy");
  run_command
      ->add_option("--duration", sim_.seconds, "Simulated time, such as 600s; 0: the scenario's")
      ->transform(CLI::AsNumberWithUnit(kSeconds))
      ->check(is_time);
  run_command->add_option("--fault", sim_.fault, "A planted fault that the run must find");
  run_command->add_option("--decisions", sim_.decisions, "Write the decision log there");
  run_command->footer("Exit status: 0 every invariant held; 1 one was broken; 2 an unknown name.");
  CLI::App* replay_command = add(*sim_command, "replay", "Decide a decision log again and compare",
                                 [this] { return run_replay(file_, as_json()); });
  replay_command->add_option("file", file_, "The log, live or simulated")->required();
  replay_command->footer(
      "Exit status: 0 all decisions are equal; 1 one differs; 2 the file is no decision log; 3 "
      "records are missing.");
}

void CommandLine::add_descriptions() {
  add(app_, "config", "Describe the configuration file", [this] { return describe_config(what_); })
      ->add_option("what", what_, "schema or reference")
      ->required();
  add(app_, "reference", "Print a page of the documentation",
      [this] { return print_reference(app_, what_); })
      ->add_option("page", what_, "configuration, command-line, man, metrics, errors or decisions")
      ->required()
      ->check(CLI::IsMember(
          {"configuration", "command-line", "man", "metrics", "errors", "decisions"}));
  add(app_, "completion", "Print a shell's completion script",
      [this] { return complete(app_, what_); })
      ->add_option("shell", what_, "bash, zsh or fish")
      ->required();
  add(app_, "version", "Print the version", [this] { return version(as_json()); });
}

int CommandLine::run(int argc, char** argv) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app_.exit(error) == 0 ? 0 : kUsage;  // --help is one that is 0
  }
  const auto chosen =
      std::ranges::find_if(actions_, [](const auto& action) { return action.first->parsed(); });
  return chosen->second();
}

}  // namespace
}  // namespace baton::app

int main(int argc, char** argv) {
  return baton::app::CommandLine().run(argc, argv);
}
