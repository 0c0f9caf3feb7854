#include "app/infer_command.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "app/failure.h"
#include "app/http_get.h"
#include "app/infer_inputs.h"
#include "protocol/command_line/arguments.h"
#include "protocol/npy/npy.h"
#include "protocol/oip/client.h"
#include "protocol/oip/client_answer.h"
#include "protocol/oip/client_inputs.h"
#include "protocol/oip/infer_codec.h"

namespace baton::app {
namespace {

namespace http1 = protocol::http1;
namespace oip = protocol::oip;

constexpr int kUsage = 2;
constexpr uint64_t kShownElements = 8;

// A model on a server; calls fail with what the server says.
class Target {
 public:
  Target(const InferOptions& options, protocol::command_line::Address address) {
    call_.host = std::move(address.host);
    call_.port = address.port;
    call_.timeout = Duration::from_seconds(options.timeout_seconds);
    if (!options.api_key.empty()) call_.headers.push_back({"X-API-Key", options.api_key});
    path_ = oip::model_target(options.model);
    if (options.version > 0) path_ += "/versions/" + std::to_string(options.version);
  }

  Result<oip::ModelMetadata, std::string> metadata() {
    call_.target = path_;
    BATON_ASSIGN(const http1::ClientResponse answer, answered());
    return oip::parse_model_metadata(answer.body, parser_);
  }

  Result<http1::ClientResponse, std::string> infer(const oip::EncodedRequest& request) {
    call_.method = "POST";
    call_.target = path_ + "/infer";
    call_.body = request.body;
    call_.headers.push_back({"Content-Type", "application/json"});
    if (request.header_length > 0) {
      call_.headers.push_back({oip::kHeaderLengthHeader, std::to_string(request.header_length)});
    }
    return answered();
  }

 private:
  Result<http1::ClientResponse, std::string> answered() {
    BATON_ASSIGN(http1::ClientResponse answer, http_call(call_));
    if (answer.status != 200) {
      return fail("status " + std::to_string(answer.status) + ": " +
                  oip::error_text(answer.body, parser_));
    }
    return answer;
  }

  HttpCall call_;
  std::string path_;
  protocol::json::JsonParser parser_;
};

// A request of the user's own goes as it is; its header length is 0.
Result<oip::EncodedRequest, Failure> make_request(const InferOptions& options, Target& target) {
  std::string json;
  if (!options.json.empty()) {
    BATON_ASSIGN(json, or_status(json_text(options.json), kUsage));
    protocol::json::JsonParser parser;
    const auto whole = oip::is_infer_request(json, parser);
    if (!whole.has_value()) return fail(Failure{kUsage, "--json: " + whole.error()});
    if (*whole && (!options.inputs.empty() || options.zeros || options.random)) {
      return fail(Failure{kUsage, "--json is a whole request: it takes no other inputs"});
    }
    if (*whole) return oip::EncodedRequest{std::move(json), 0};
  }
  if (!options.shapes.empty() && !options.zeros && !options.random) {
    return fail(Failure{kUsage, "--shape is for --zeros and --random"});
  }
  BATON_ASSIGN(auto metadata, or_status(target.metadata(), 1));
  BATON_ASSIGN(const InferRequest request,
               or_status(gather_inputs(options, json, std::move(metadata)), kUsage));
  return oip::encode_infer_request(
      request.inputs, options.as_json ? oip::OutputForm::kJson : oip::OutputForm::kBinary);
}

Result<void, std::string> save(const std::vector<Tensor>& outputs, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail("\"" + folder + "\" cannot be made: " + error.message());
  for (const Tensor& output : outputs) {
    const auto bytes = protocol::npy::write_npy(output);
    if (!bytes.has_value()) {
      return fail("output \"" + output.name + "\" cannot be saved: " + bytes.error());
    }
    const auto path = std::filesystem::path(folder) / (oip::path_segment(output.name) + ".npy");
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << *bytes;
    file.close();
    if (!file) return fail("\"" + path.string() + "\" cannot be written");
  }
  return {};
}

void print(const oip::InferAnswer& answer) {
  const auto plain = [](const std::string& name) { return oip::printable(name); };
  std::printf("%s, version %s\n", plain(answer.model).c_str(), plain(answer.version).c_str());
  for (const Tensor& output : answer.result.outputs) {
    std::printf("%s  %s %s\n    %s\n", plain(output.name).c_str(),
                std::string(data_type_name(output.type)).c_str(), shape_text(output.shape).c_str(),
                oip::elements_text(output, kShownElements).c_str());
  }
}

Result<void, std::string> report(const InferOptions& options, const http1::ClientResponse& answer) {
  const auto length = answer.header(oip::kHeaderLengthHeader);
  if (options.as_json) {
    BATON_ASSIGN(const std::string_view json, oip::answer_json(answer.body, length));
    std::printf("%s\n", std::string(json).c_str());
  }
  if (options.as_json && options.save.empty()) return {};
  protocol::json::JsonParser parser;
  BATON_ASSIGN(const oip::InferAnswer read, oip::parse_infer_answer(answer.body, length, parser));
  if (!options.as_json) print(read);
  if (!options.save.empty()) BATON_TRY(save(read.result.outputs, options.save));
  return {};
}

Result<void, Failure> infer(const InferOptions& options) {
  BATON_ASSIGN(auto address, or_status(protocol::command_line::parse_address(options.url), kUsage));
  Target target(options, std::move(address));
  BATON_ASSIGN(const oip::EncodedRequest request, make_request(options, target));
  BATON_ASSIGN(const http1::ClientResponse answer, or_status(target.infer(request), 1));
  return or_status(report(options, answer), 1);
}

}  // namespace

int run_infer(const InferOptions& options) {
  const auto done = infer(options);
  if (done.has_value()) return 0;
  std::fprintf(stderr, "baton: %s\n", done.error().message.c_str());
  return done.error().status;
}

}  // namespace baton::app
