#include "app/optimize_command.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "adapters/repository/folder_repository.h"
#include "app/failure.h"
#include "app/optimize_script.h"
#include "base/json_writer.h"
#include "protocol/command_line/arguments.h"
#include "service/fleet/plan_model.h"

namespace baton::app {
namespace {

namespace fs = std::filesystem;

constexpr int kUsage = 2;

Failure wrong(std::string message) {
  return {kUsage, std::move(message)};
}

// The version that is asked for, as its folder has it.
Result<service::LoadRequest, Failure> find_version(const OptimizeOptions& options,
                                                   ports::ModelRepository& repository) {
  auto found = repository.find(options.model);
  if (!found.has_value()) return fail(wrong(found.error().message));
  if (!*found) return fail(wrong("no repository has a model \"" + options.model + "\""));
  service::PlanOverride asked;
  if (options.version > 0) asked.version = options.version;
  service::ModelPlan plan =
      service::plan_model(**found, protocol::model_config::Unsupported::kWarn, asked);
  if (!plan.problem.empty()) {
    return fail(wrong("model \"" + options.model + "\": " + plan.problem));
  }
  return std::move(plan.requests.back());
}

Result<std::string, Failure> question(const OptimizeOptions& options) {
  const auto repository = adapters::repository::make_folder_repository(options.repositories);
  BATON_ASSIGN(const service::LoadRequest request, find_version(options, *repository));
  const ModelConfig config = request.config.value_or(ModelConfig());
  auto file = repository->model_file(request.model, request.version, config.default_file);
  if (!file.has_value()) return fail(wrong(file.error().message));
  const fs::path folder = fs::path(*file).parent_path().parent_path();
  const fs::path place = options.out.empty() ? folder.parent_path() : fs::path(options.out);
  std::string text;
  JsonWriter json(text);
  json.begin_object().field("model", options.model).field("version", request.version);
  json.field("source", *file).field("folder", folder.string());
  json.field("target", (place / (options.model + "_" + options.kind)).string());
  json.field("kind", options.kind);
  // -1: as it would be derived from the file.
  json.field("max_batch_size", request.config ? int64_t{config.max_batch_size} : int64_t{-1});
  json.field("inputs", options.inputs);
  json.key("shapes").begin_object();
  for (const std::string& shape : options.shapes) {
    BATON_ASSIGN(const auto given, or_status(protocol::command_line::parse_shape(shape), kUsage));
    json.key(given.first).begin_array();
    for (const int64_t dim : given.second) json.number(dim);
    json.end_array();
  }
  json.end_object().field("seed", options.seed);
  json.key("most_difference").number(options.most_difference);
  json.field("replace", options.replace).field("json", options.as_json).end_object();
  return text;
}

// Runs the script, which is its standard input. Its exit status.
Result<int, Failure> run_script(const std::string& python, std::string& ask) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return fail(Failure{1, std::string("no pipe: ") + strerror(errno)});
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::string program = python;
  std::string dash = "-";
  std::array<char*, 4> words = {program.data(), dash.data(), ask.data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawnp(&child, python.c_str(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[0]);
  if (error != 0) {
    close(ends[1]);
    return fail(wrong("--python " + python + " cannot be run: " + strerror(error)));
  }
  std::string_view script = kOptimizeScript;
  while (!script.empty()) {
    const ssize_t written = write(ends[1], script.data(), script.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;  // it has ended: its status says why
    script.remove_prefix(static_cast<size_t>(written));
  }
  close(ends[1]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return fail(Failure{1, "the conversion was ended by signal " + std::to_string(WTERMSIG(status))});
}

}  // namespace

int run_optimize(const OptimizeOptions& options) {
  signal(SIGPIPE, SIG_IGN);
  const auto outcome = [&]() -> Result<int, Failure> {
    BATON_ASSIGN(std::string ask, question(options));
    return run_script(options.python, ask);
  }();
  if (outcome.has_value()) return *outcome;
  std::fprintf(stderr, "baton: %s\n", outcome.error().message.c_str());
  return outcome.error().status;
}

}  // namespace baton::app
