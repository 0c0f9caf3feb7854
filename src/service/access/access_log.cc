#include "service/access/access_log.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/json_writer.h"

namespace baton::service {
namespace {

// What a line holds at most beside the texts in it.
constexpr size_t kFixedBytes = 1024;

// Appends to memory that is large enough: nothing is checked for each piece.
class Pieces {
 public:
  explicit Pieces(char* at) : at_(at) {}
  template <size_t N>
  Pieces& literal(const char (&text)[N]) {
    std::memcpy(at_, text, N - 1);
    at_ += N - 1;
    return *this;
  }
  Pieces& text(std::string_view text) {
    if (!text.empty()) std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
    return *this;
  }
  template <class Number>
  Pieces& number(Number value) {
    at_ = std::to_chars(at_, at_ + 20, value).ptr;  // a 64-bit number has 20 characters at most
    return *this;
  }
  Pieces& padded(uint64_t value, int digits) {
    for (int i = digits - 1; i >= 0; --i) {
      at_[i] = static_cast<char>('0' + value % 10);
      value /= 10;
    }
    at_ += digits;
    return *this;
  }
  // A JSON string with its quotes, which escaping makes six times as long at most.
  Pieces& string(std::string_view value, std::string& escaped) {
    if (is_plain_json(value)) return literal("\"").text(value).literal("\"");
    escaped.clear();
    append_json_string(escaped, value);
    return text(escaped);
  }
  Pieces& hex(std::span<const uint8_t> bytes) {
    static constexpr char kHex[] = "0123456789abcdef";
    for (uint8_t byte : bytes) {
      *at_++ = kHex[byte >> 4];
      *at_++ = kHex[byte & 15];
    }
    return *this;
  }
  [[nodiscard]] char* end() const { return at_; }

 private:
  char* at_;
};

size_t bytes_of(const ForwardedHeaders* headers) {
  if (headers == nullptr) return 0;
  constexpr size_t kMarks = 6;  // around each
  size_t bytes = 0;
  for (const auto& header : headers->headers) {
    bytes += header.name.size() + header.value.size() + kMarks;
  }
  return bytes;
}

void write_headers(Pieces& line, const ForwardedHeaders& headers, std::string& escaped) {
  line.literal(",\"headers\":{");
  bool first = true;
  for (const auto& header : headers.headers) {
    if (!std::exchange(first, false)) line.literal(",");
    line.string(header.name, escaped).literal(":").string(header.value, escaped);
  }
  line.literal("}");
  if (headers.cut) line.literal(",\"headers_cut\":true");
}

std::string civil_text(int64_t unix_seconds) {
  using namespace std::chrono;
  const sys_seconds time{seconds(unix_seconds)};
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  std::array<char, 32> out{};
  Pieces text(out.data());
  text.padded(static_cast<uint64_t>(static_cast<int>(date.year())), 4).literal("-");
  text.padded(static_cast<unsigned>(date.month()), 2).literal("-");
  text.padded(static_cast<unsigned>(date.day()), 2).literal("T");
  text.padded(static_cast<uint64_t>(clock.hours().count()), 2).literal(":");
  text.padded(static_cast<uint64_t>(clock.minutes().count()), 2).literal(":");
  text.padded(static_cast<uint64_t>(clock.seconds().count()), 2);
  return {out.data(), text.end()};
}

}  // namespace

void AccessLog::write(const AccessRecord& record) {
  if (sink_ == nullptr) return;
  const RequestContext& context = *record.context;
  const bool step = record.sequence != nullptr && record.sequence->id.given();
  const size_t texts = context.client_id.size() + context.tenant.size() + record.model.size() +
                       record.message.size() + (step ? record.sequence->id.text.size() : 0);
  const size_t bytes = kFixedBytes + 6 * (texts + bytes_of(context.headers.get()));
  if (line_.size() < bytes) line_.resize(bytes);
  const int64_t ns = clock_.wall().unix_ns;
  const int64_t second = ns / 1'000'000'000;
  if (second != cached_second_) {
    cached_second_ = second;
    cached_text_ = civil_text(second);
  }
  Pieces line(line_.data());
  line.literal("{\"ts\":\"").text(cached_text_).literal(".");
  line.padded(static_cast<uint64_t>(ns % 1'000'000'000) / 1'000, 6).literal("Z\",\"request\":");
  line.number(context.id.value());
  if (!context.client_id.empty()) {
    line.literal(",\"client_id\":").string(context.client_id, escaped_);
  }
  line.literal(",\"protocol\":\"").text(protocol_name(context.protocol));
  line.literal("\",\"tenant\":").string(context.tenant, escaped_);
  line.literal(",\"class\":\"").text(traffic_class_name(context.traffic_class));
  line.literal("\",\"model\":").string(record.model, escaped_);
  if (record.version != 0) line.literal(",\"version\":").number(record.version);
  line.literal(",\"end_reason\":\"").text(end_reason_name(record.reason)).literal("\"");
  if (!record.message.empty()) line.literal(",\"message\":").string(record.message, escaped_);
  if (step) {
    const CorrelationId& id = record.sequence->id;
    line.literal(",\"sequence\":");
    if (id.text.empty()) {
      line.number(id.number);
    } else {
      line.string(id.text, escaped_);
    }
    if (record.sequence->start) line.literal(",\"sequence_start\":true");
    if (record.sequence->end) line.literal(",\"sequence_end\":true");
  }
  line.literal(",\"bytes\":").number(context.bytes);
  line.literal(",\"items\":").number(record.items);
  if (context.predicted_cost > Duration()) {
    line.literal(",\"predicted_us\":").number(context.predicted_cost.us());
  }
  const ports::CallTimings& timings = record.timings;
  if (timings.batch_items != 0) {
    line.literal(",\"batch\":").number(timings.batch_items);
    line.literal(",\"queue_us\":").number((timings.started - timings.queued).us());
    line.literal(",\"compute_us\":").number((timings.computed_to - timings.computed_from).us());
  }
  line.literal(",\"total_us\":").number((record.ended - context.arrival).us());
  if (context.trace.present()) {
    line.literal(",\"trace_id\":\"").hex(context.trace.trace_id).literal("\"");
  }
  if (context.headers != nullptr) write_headers(line, *context.headers, escaped_);
  line.literal("}");
  sink_->write({line_.data(), line.end()});
}

}  // namespace baton::service
