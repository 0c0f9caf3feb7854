#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/server.h"
#include "domain/version.h"

namespace {

int serve(const baton::app::ServeOptions& options) {
  if (options.config.repositories.empty()) {
    std::fputs("baton: no model repository: name a folder, `baton serve DIR`\n", stderr);
    return 2;
  }
  auto status = baton::app::run_server(options);
  if (status.has_value()) return *status;
  std::fprintf(stderr, "baton: %s\n", status.error().message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Keeps real-time inference inside its latency objectives.", "baton");
  app.require_subcommand(1);
  baton::app::ServeOptions options;
  int64_t lame_duck_ms = options.config.shutdown.lame_duck.ms();
  CLI::App* serve_command = app.add_subcommand("serve", "Serve the models of repositories");
  serve_command->add_option("repository", options.config.repositories, "Folders of models");
  serve_command->add_option("--host", options.config.listen.host, "Address to listen on");
  serve_command->add_option("--http-port", options.config.listen.http_port, "0: a free port");
  serve_command->add_option("--grpc-port", options.config.listen.grpc_port, "0: a free port");
  serve_command->add_option("--metrics-port", options.config.listen.metrics_port, "0: a free port");
  serve_command->add_option("--ports-file", options.ports_file, "Write the ports there as JSON");
  serve_command->add_option("--ort-library", options.config.ort_library, "libonnxruntime.so");
  serve_command->add_option("--access-log", options.config.log.access, "Path, or - for stdout");
  serve_command->add_option("--workers", options.config.workers, "Gateway workers");
  serve_command->add_option("--lame-duck-ms", lame_duck_ms, "Serving time after SIGTERM");
  app.add_subcommand("version", "Print the version");
  CLI11_PARSE(app, argc, argv);
  if (serve_command->parsed()) {
    options.config.shutdown.lame_duck = baton::Duration::ms(lame_duck_ms);
    return serve(options);
  }
  std::printf("baton %.*s\n", static_cast<int>(baton::kBatonVersion.size()),
              baton::kBatonVersion.data());
  return 0;
}
