#include "service/telemetry/trace_line.h"

#include "base/json_writer.h"

namespace baton::service {
namespace {

void write_stamp(JsonWriter& json, std::string_view name, Instant when) {
  if (when == Instant()) return;
  json.begin_object().field("name", name).field("ns", when.ns()).end_object();
}

std::string_view arrival_name(Protocol protocol) {
  return protocol == Protocol::kGrpc ? "GRPC_WAITREAD_START" : "HTTP_RECV_START";
}

}  // namespace

std::string trace_line(const RequestTrace& trace) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("id", trace.context.id.value());
  json.field("model_name", trace.model).field("model_version", trace.version);
  if (!trace.context.client_id.empty()) json.field("request_id", trace.context.client_id);
  if (trace.reason != EndReason::kOk) json.field("end_reason", end_reason_name(trace.reason));
  json.key("timestamps").begin_array();
  write_stamp(json, arrival_name(trace.context.protocol), trace.context.arrival);
  write_stamp(json, "REQUEST_START", trace.started);
  const ports::CallTimings& timings = trace.timings;
  if (timings.batch_items != 0) {
    write_stamp(json, "QUEUE_START", timings.queued);
    write_stamp(json, "COMPUTE_START", timings.started);
    write_stamp(json, "COMPUTE_INPUT_END", timings.computed_from);
    write_stamp(json, "COMPUTE_OUTPUT_START", timings.computed_to);
    write_stamp(json, "COMPUTE_END", timings.ended);
  }
  write_stamp(json, "REQUEST_END", trace.ended);
  json.end_array().end_object();
  return out;
}

}  // namespace baton::service
