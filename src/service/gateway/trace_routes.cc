#include "service/gateway/trace_routes.h"

#include "protocol/oip/trace_settings.h"
#include "service/gateway/http_answers.h"

namespace baton::service {

using protocol::http1::HttpResponse;
using protocol::oip::Route;
using protocol::oip::RouteKind;

bool is_trace_route(RouteKind kind) {
  return kind == RouteKind::kTraceSettings || kind == RouteKind::kUpdateTraceSettings;
}

Result<HttpResponse, Refusal> answer_trace_route(const Route& route, std::string_view body,
                                                 Gateway& gateway,
                                                 protocol::json::JsonParser& parser) {
  ports::TraceControl* traces = gateway.traces();
  if (traces == nullptr) return fail(protocol::oip::traces_not_offered());
  if (!route.model.empty()) {
    const auto view = gateway.view(route.model, std::nullopt);
    if (!view.has_value() && view.error().reason == EndReason::kNotFound) return fail(view.error());
  }
  const std::string file = traces->file();
  if (route.kind == RouteKind::kUpdateTraceSettings) {
    BATON_ASSIGN(
        const TraceOverrides overrides,
        protocol::oip::parse_trace_settings(body, parser, file, traces->overrides(route.model)));
    BATON_TRY(protocol::oip::check_trace_overrides(route.model, overrides));
    traces->apply(route.model, overrides);
  }
  return json_response(200,
                       protocol::oip::trace_settings_json(traces->settings(route.model), file));
}

}  // namespace baton::service
