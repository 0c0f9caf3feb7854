#include "service/access/access_log.h"

#include <array>
#include <chrono>

#include "base/json_writer.h"

namespace baton::service {
namespace {

void append_padded(std::string& out, uint64_t value, int digits) {
  std::array<char, 20> buffer{};
  for (int i = digits - 1; i >= 0; --i) {
    buffer[static_cast<size_t>(i)] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
  out.append(buffer.data(), static_cast<size_t>(digits));
}

std::string civil_text(int64_t unix_seconds) {
  using namespace std::chrono;
  const sys_seconds time{seconds(unix_seconds)};
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  std::string out;
  append_padded(out, static_cast<uint64_t>(static_cast<int>(date.year())), 4);
  out += '-';
  append_padded(out, static_cast<unsigned>(date.month()), 2);
  out += '-';
  append_padded(out, static_cast<unsigned>(date.day()), 2);
  out += 'T';
  append_padded(out, static_cast<uint64_t>(clock.hours().count()), 2);
  out += ':';
  append_padded(out, static_cast<uint64_t>(clock.minutes().count()), 2);
  out += ':';
  append_padded(out, static_cast<uint64_t>(clock.seconds().count()), 2);
  return out;
}

void append_trace(JsonWriter& json, const TraceContext& trace) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::array<char, 32> text{};
  for (size_t i = 0; i < trace.trace_id.size(); ++i) {
    text[2 * i] = kHex[trace.trace_id[i] >> 4];
    text[2 * i + 1] = kHex[trace.trace_id[i] & 15];
  }
  json.field("trace_id", std::string_view(text.data(), text.size()));
}

}  // namespace

void AccessLog::append_time(std::string& line) {
  const int64_t ns = clock_.wall().unix_ns;
  const int64_t second = ns / 1'000'000'000;
  if (second != cached_second_) {
    cached_second_ = second;
    cached_text_ = civil_text(second);
  }
  line.append("{\"ts\":\"").append(cached_text_) += '.';
  append_padded(line, static_cast<uint64_t>(ns % 1'000'000'000) / 1'000, 6);
  line.append("Z\"");
}

void AccessLog::write(const AccessRecord& record) {
  if (sink_ == nullptr) return;
  const RequestContext& context = *record.context;
  std::string line;
  line.reserve(384);
  append_time(line);
  line += ',';
  JsonWriter json(line);
  json.field("request", context.id.value());
  if (!context.client_id.empty()) json.field("client_id", context.client_id);
  json.field("protocol", protocol_name(context.protocol)).field("tenant", context.tenant);
  json.field("class", traffic_class_name(context.traffic_class)).field("model", record.model);
  if (record.version != 0) json.field("version", record.version);
  json.field("end_reason", end_reason_name(record.reason));
  if (!record.message.empty()) json.field("message", record.message);
  json.field("bytes", context.bytes).field("items", record.items);
  if (context.predicted_cost > Duration()) json.field("predicted_us", context.predicted_cost.us());
  const ports::CallTimings& timings = record.timings;
  if (timings.batch_items != 0) {
    json.field("batch", uint64_t{timings.batch_items});
    json.field("queue_us", (timings.started - timings.queued).us());
    json.field("compute_us", (timings.computed_to - timings.computed_from).us());
  }
  json.field("total_us", (record.ended - context.arrival).us());
  if (context.trace.present()) append_trace(json, context.trace);
  line += '}';
  sink_->write(std::move(line));
}

}  // namespace baton::service
