#include "app/check_command.h"

#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "adapters/log/log_writer.h"
#include "adapters/onnx/ort_library.h"
#include "adapters/repository/folder_repository.h"
#include "adapters/transport/steady_clock.h"
#include "app/server.h"
#include "base/json_writer.h"
#include "service/fleet/plan_model.h"

namespace baton::app {
namespace {

struct Finding {
  std::string model;
  int64_t version = 0;  // 0: of the model as a whole
  std::string problem;  // empty: it would load
  uint32_t max_batch_size = 0;
  std::vector<std::string> remarks;
};

Finding check_version(const service::LoadPorts& ports, const service::LoadRequest& request) {
  Finding finding;
  finding.model = request.model.name;
  finding.version = request.version;
  const auto opened = service::open_version(ports, request);
  if (opened.has_value()) {
    finding.max_batch_size = opened->config.max_batch_size;
  } else {
    const LoadFailure& failure = opened.error();
    finding.problem = failure.message + (failure.detail.empty() ? "" : ": " + failure.detail);
  }
  return finding;
}

void check_model(const service::LoadPorts& ports, const std::string& name, service::ModelPlan plan,
                 std::vector<Finding>& findings) {
  if (!plan.problem.empty() || !plan.remarks.empty()) {
    Finding whole;
    whole.model = name;
    whole.problem = std::move(plan.problem);
    whole.remarks = std::move(plan.remarks);
    findings.push_back(std::move(whole));
  }
  for (const auto& request : plan.requests) findings.push_back(check_version(ports, request));
}

void print_text(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    const std::string version = finding.version != 0 ? "/" + std::to_string(finding.version) : "";
    const char* mark = finding.problem.empty() ? "ok    " : "FAILED";
    std::printf("%s  %s%s", mark, finding.model.c_str(), version.c_str());
    if (!finding.problem.empty()) {
      std::printf(": %s", finding.problem.c_str());
    } else if (finding.version != 0) {
      std::printf("  max batch %u", finding.max_batch_size);
    }
    std::printf("\n");
    for (const std::string& remark : finding.remarks) std::printf("        %s\n", remark.c_str());
  }
}

void print_json(const std::vector<Finding>& findings) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const Finding& finding : findings) {
    json.begin_object().field("model", finding.model);
    if (finding.version != 0) json.field("version", finding.version);
    json.field("ok", finding.problem.empty());
    if (!finding.problem.empty()) json.field("problem", finding.problem);
    json.field("max_batch_size", uint64_t{finding.max_batch_size}).key("remarks").begin_array();
    for (const std::string& remark : finding.remarks) json.string(remark);
    json.end_array().end_object();
  }
  json.end_array();
  std::printf("%s\n", out.c_str());
}

}  // namespace

int run_check(const ServerConfig& config, bool as_json) {
  const adapters::transport::SteadyClock clock;
  adapters::log::LogWriter sink(STDERR_FILENO, false);
  adapters::log::TextLog log(sink, clock, ports::LogLevel::kError);
  auto runtime = adapters::onnx::open_onnxruntime(
      {find_ort_library(config.ort_library), config.cpu_when_provider_missing}, log, clock);
  if (!runtime.has_value()) {
    std::fprintf(stderr, "baton: %s\n", runtime.error().message.c_str());
    return 1;
  }
  const auto repository = adapters::repository::make_folder_repository(config.repositories);
  const auto found = repository->scan();
  if (!found.has_value()) {
    std::fprintf(stderr, "baton: %s\n", found.error().message.c_str());
    return 1;
  }
  const auto unsupported = config.warn_unsupported ? protocol::model_config::Unsupported::kWarn
                                                   : protocol::model_config::Unsupported::kRefuse;
  std::vector<Finding> findings;
  for (const ports::FoundModel& model : *found) {
    check_model({*repository, **runtime, clock, nullptr}, model.name,
                service::plan_model(model, unsupported), findings);
  }
  if (config.required_models) {
    for (const std::string& name : service::missing_models(*config.required_models, *found)) {
      Finding& missing = findings.emplace_back();
      missing.model = name;
      missing.problem = service::kMissingModel;
    }
  }
  if (as_json) {
    print_json(findings);
  } else {
    print_text(findings);
  }
  for (const Finding& finding : findings) {
    if (!finding.problem.empty()) return 1;
  }
  return 0;
}

}  // namespace baton::app
