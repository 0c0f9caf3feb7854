#include "service/gateway/log_routes.h"

#include "protocol/oip/log_settings.h"
#include "service/gateway/http_answers.h"

namespace baton::service {

using protocol::http1::HttpResponse;
using protocol::oip::Route;
using protocol::oip::RouteKind;

bool is_log_route(RouteKind kind) {
  return kind == RouteKind::kLogSettings || kind == RouteKind::kUpdateLogSettings;
}

Result<HttpResponse, Refusal> answer_log_route(const Route& route, std::string_view body,
                                               ports::LogControl* log,
                                               protocol::json::JsonParser& parser) {
  if (log == nullptr) {
    return fail(Refusal{EndReason::kUnsupported, "the logging extension is not offered", {}});
  }
  LogSettings settings = log->settings();
  if (route.kind == RouteKind::kUpdateLogSettings) {
    BATON_ASSIGN(settings, protocol::oip::parse_log_settings(body, parser, settings));
    log->apply(settings);
  }
  return json_response(200, protocol::oip::log_settings_json(settings));
}

}  // namespace baton::service
