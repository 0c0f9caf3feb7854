#include "service/gateway/repository_front.h"

#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "service/gateway/http_answers.h"

namespace baton::service {

using protocol::http1::ExchangeId;
using protocol::http1::HttpRequest;
using protocol::http1::HttpResponder;
using protocol::oip::Route;
using protocol::oip::RouteKind;

namespace {

// A body above this size is read by a job: it holds files.
constexpr size_t kMostBodyOnLoop = 256 << 10;

std::string index_json(const std::vector<ports::ModelIndexRow>& rows) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const ports::ModelIndexRow& row : rows) {
    json.begin_object().field("name", row.name).field("version", row.version);
    json.field("state", row.state).field("reason", row.reason).end_object();
  }
  json.end_array();
  return out;
}

}  // namespace

// One exchange, until it is answered. A client that goes away stops nothing: what it asked for is
// done, and the answer falls on the floor.
struct RepositoryFront::Asked {
  ExchangeId id;
  HttpRequest request;
  Route route;
  RequestContext context;
  HttpResponder& responder;
};

void RepositoryFront::on_request(ExchangeId id, HttpRequest request, Route route,
                                 RequestContext context, HttpResponder& responder) {
  const auto asked = std::make_shared<Asked>(
      Asked{id, std::move(request), std::move(route), std::move(context), responder});
  if (control_ == nullptr) {
    return refuse(*asked, {EndReason::kUnsupported, "the model repository is not offered", {}});
  }
  if (!asked->route.repository.empty()) {
    return refuse(
        *asked,
        {EndReason::kUnsupported, "a repository is not chosen by name: all of them are one", {}});
  }
  if (asked->route.kind == RouteKind::kRepositoryIndex) return index(asked);
  if (asked->route.kind == RouteKind::kRepositoryUnload) return unload(asked);
  load(asked);
}

void RepositoryFront::refuse(const Asked& asked, const Refusal& refusal) {
  gateway_.record_refused(asked.context, asked.route.model, refusal);
  asked.responder.respond(asked.id, error_response(refusal));
}

void RepositoryFront::answer(const Asked& asked, const Result<void, Refusal>& result) {
  if (!result.has_value()) return refuse(asked, result.error());
  asked.responder.respond(asked.id, json_response(200, ""));
}

void RepositoryFront::index(const AskedPtr& asked) {
  const auto wanted = protocol::oip::decode_index_request(asked->request.body, parser_);
  if (!wanted.has_value()) return refuse(*asked, wanted.error());
  control_->index(wanted->ready, loop_,
                  [this, asked](Result<std::vector<ports::ModelIndexRow>, Refusal> rows) {
                    if (!rows.has_value()) return refuse(*asked, rows.error());
                    asked->responder.respond(asked->id, json_response(200, index_json(*rows)));
                  });
}

void RepositoryFront::load(const AskedPtr& asked) {
  if (asked->request.body.size() <= kMostBodyOnLoop || !reading_.offered()) {
    return load_decoded(asked, protocol::oip::decode_load_request(asked->request.body, parser_));
  }
  tickets_[asked->id.value()] = reading_.start(
      [request = asked->request] {
        protocol::json::JsonParser parser;
        return protocol::oip::decode_load_request(request.body, parser);
      },
      [this, asked](Result<protocol::oip::LoadRequestBody, Refusal> decoded) {
        tickets_.erase(asked->id.value());
        load_decoded(asked, std::move(decoded));
      });
}

void RepositoryFront::load_decoded(const AskedPtr& asked,
                                   Result<protocol::oip::LoadRequestBody, Refusal> decoded) {
  asked->request = {};  // its body may be large
  if (!decoded.has_value()) return refuse(*asked, decoded.error());
  ports::LoadCommand command;
  command.model = asked->route.model;
  command.version = decoded->version;
  command.config = std::move(decoded->config);
  command.files = std::move(decoded->files);
  control_->load(std::move(command), loop_,
                 [this, asked](const Result<void, Refusal>& result) { answer(*asked, result); });
}

void RepositoryFront::unload(const AskedPtr& asked) {
  const auto wanted = protocol::oip::decode_unload_request(asked->request.body, parser_);
  if (!wanted.has_value()) return refuse(*asked, wanted.error());
  // No model depends on another one yet: whether dependents go too makes no difference.
  control_->unload({asked->route.model, wanted->version}, loop_,
                   [this, asked](const Result<void, Refusal>& result) { answer(*asked, result); });
}

}  // namespace baton::service
