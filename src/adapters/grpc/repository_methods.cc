#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <utility>

#include "adapters/grpc/inference_service.h"
#include "baton_inference.pb.h"
#include "protocol/oip/repository_codec.h"

namespace baton::adapters::grpc_api {
namespace {

using Parameters = google::protobuf::Map<std::string, inference::ModelRepositoryParameter>;
using Parameter = inference::ModelRepositoryParameter;

constexpr std::string_view kFilePrefix = "file:";

// A parameter of a few bytes takes a hundred in memory.
constexpr int kMostFields = 4096;

// Of a serialized message, before it is parsed; what is malformed is left to the parser.
bool too_many_fields(const std::string& bytes) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  int fields = 0;
  while (const uint32_t tag = in.ReadTag()) {
    if (++fields > kMostFields) return true;
    if (!google::protobuf::internal::WireFormatLite::SkipField(&in, tag)) break;
  }
  return false;
}

Refusal invalid(std::string message) {
  return {EndReason::kInvalid, std::move(message), {}};
}

Refusal wrong_type(const std::string& name, std::string_view expected) {
  return invalid("the parameter \"" + name + "\" is expected as " + std::string(expected));
}

Result<int64_t, Refusal> read_version(const Parameter& parameter) {
  if (parameter.parameter_choice_case() == Parameter::kInt64Param) {
    return protocol::oip::parse_version_parameter(std::to_string(parameter.int64_param()));
  }
  return protocol::oip::parse_version_parameter(parameter.string_param());
}

// Moves what is large out of the message.
Result<ports::LoadCommand, Refusal> read_load(inference::RepositoryModelLoadRequest& request) {
  ports::LoadCommand command;
  command.model = request.model_name();
  for (auto& [name, parameter] : *request.mutable_parameters()) {
    const auto choice = parameter.parameter_choice_case();
    if (name == "config") {
      if (choice != Parameter::kStringParam) return fail(wrong_type(name, "string_param"));
      command.config = std::move(*parameter.mutable_string_param());
    } else if (name == "version") {
      BATON_ASSIGN(command.version, read_version(parameter));
    } else if (name.starts_with(kFilePrefix)) {
      if (choice != Parameter::kBytesParam) return fail(wrong_type(name, "bytes_param"));
      command.files[name.substr(kFilePrefix.size())] = std::move(*parameter.mutable_bytes_param());
    } else {
      return fail(invalid("the parameter \"" + name +
                          "\" is not known; config, version and file:<version>/<file> are"));
    }
  }
  BATON_TRY(protocol::oip::check_load_parameters(command.config, command.files));
  return command;
}

Result<ports::UnloadCommand, Refusal> read_unload(
    const inference::RepositoryModelUnloadRequest& request) {
  ports::UnloadCommand command;
  command.model = request.model_name();
  for (const auto& [name, parameter] : request.parameters()) {
    if (name == "version") {
      BATON_ASSIGN(command.version, read_version(parameter));
    } else if (name != "unload_dependents") {
      return fail(invalid("the parameter \"" + name +
                          "\" is not known; unload_dependents and version are"));
    } else if (parameter.parameter_choice_case() != Parameter::kBoolParam) {
      return fail(wrong_type(name, "bool_param"));
    }
  }
  return command;
}

using CallPtr = std::shared_ptr<Call>;

void refuse(const CallPtr& call, const std::string& model, const Refusal& refusal) {
  call->finish(call->refused(model, refusal));
}

// Answers with an empty `Response` when the command is done.
template <class Response>
ports::RepositoryControl::Done answer_to(const CallPtr& call, const std::string& model) {
  return [call, model](const Result<void, Refusal>& result) {
    if (!result.has_value()) return refuse(call, model, result.error());
    call->answer(message_of(Response().SerializeAsString()));
  };
}

void answer_index(const CallPtr& call, const std::vector<ports::ModelIndexRow>& rows) {
  inference::RepositoryIndexResponse response;
  for (const ports::ModelIndexRow& row : rows) {
    auto& model = *response.add_models();
    model.set_name(row.name);
    model.set_version(row.version);
    model.set_state(row.state);
    model.set_reason(row.reason);
  }
  call->answer(message_of(response.SerializeAsString()));
}

void index(const CallPtr& call, inference::RepositoryIndexRequest& request,
           ports::RepositoryControl& control) {
  control.index(request.ready(), *call->worker().loop,
                [call](const Result<std::vector<ports::ModelIndexRow>, Refusal>& rows) {
                  if (!rows.has_value()) return refuse(call, "", rows.error());
                  answer_index(call, *rows);
                });
}

void load(const CallPtr& call, inference::RepositoryModelLoadRequest& request,
          ports::RepositoryControl& control) {
  auto command = read_load(request);
  if (!command.has_value()) return refuse(call, request.model_name(), command.error());
  control.load(std::move(*command), *call->worker().loop,
               answer_to<inference::RepositoryModelLoadResponse>(call, request.model_name()));
}

void unload(const CallPtr& call, inference::RepositoryModelUnloadRequest& request,
            ports::RepositoryControl& control) {
  auto command = read_unload(request);
  if (!command.has_value()) return refuse(call, request.model_name(), command.error());
  control.unload(std::move(*command), *call->worker().loop,
                 answer_to<inference::RepositoryModelUnloadResponse>(call, request.model_name()));
}

// A method whose answer comes later.
template <class Request, class Ask>
Method command(Ask ask) {
  const auto begin = [ask](const CallPtr& call) {
    const std::string bytes = call->take_request();
    if (too_many_fields(bytes)) {
      return call->refuse_counted(
          {EndReason::kTooLarge,
           "the message has more than " + std::to_string(kMostFields) + " fields",
           {}});
    }
    Request request;
    if (!parse(bytes, request)) {
      return call->refuse_counted(invalid("the request is not a " + request.GetTypeName()));
    }
    ports::RepositoryControl* control = call->worker().front->repository();
    if (control == nullptr) {
      return call->refuse_counted(
          {EndReason::kUnsupported, "the model repository is not offered", {}});
    }
    if (!request.repository_name().empty()) {
      return call->refuse_counted(
          {EndReason::kUnsupported, "a repository is not chosen by name: all of them are one", {}});
    }
    ask(call, request, *control);
  };
  return {.begin = begin};
}

}  // namespace

void add_repository_methods(MethodTable& methods) {
  methods.offered[inference_method("RepositoryIndex")] =
      command<inference::RepositoryIndexRequest>(index);
  Method& loading = methods.offered[inference_method("RepositoryModelLoad")];
  loading = command<inference::RepositoryModelLoadRequest>(load);
  loading.large = true;  // it may bring files
  methods.offered[inference_method("RepositoryModelUnload")] =
      command<inference::RepositoryModelUnloadRequest>(unload);
}

}  // namespace baton::adapters::grpc_api
