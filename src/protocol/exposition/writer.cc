#include "protocol/exposition/writer.h"

#include <array>
#include <charconv>

namespace baton::protocol::exposition {
namespace {

std::string number_text(uint64_t value) {
  return std::to_string(value);
}

// Fixed, so that bucket bounds read 0.0001 and not 1e-04.
std::string number_text(double value) {
  std::array<char, 400> buffer;  // the longest double has 309 digits before the point
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
  return {buffer.data(), end.ptr};
}

// A bucket's bound. OpenMetrics writes whole numbers as "1.0".
std::string bound_text(double bound, Format format) {
  std::string text = number_text(bound);
  if (format == Format::kOpenMetrics && text.find('.') == std::string::npos) text += ".0";
  return text;
}

void append_label(std::string& out, std::string_view name, std::string_view value) {
  if (out.back() != '{') out += ',';
  out.append(name).append("=\"");
  for (char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

void Writer::family(std::string_view name, std::string_view type, std::string_view help) {
  constexpr std::string_view kTotal = "_total";
  name_ = name;
  if (format_ == Format::kOpenMetrics && type == "counter") {
    if (name.ends_with(kTotal)) {
      name.remove_suffix(kTotal.size());
    } else {
      type = "unknown";
    }
  }
  out_.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ");
  out_.append(name).append(" ").append(type).append("\n");
}

void Writer::line(std::string_view suffix, std::span<const Label> labels, std::string_view le,
                  std::string_view value) {
  out_.append(name_).append(suffix);
  if (!labels.empty() || !le.empty()) {
    out_ += '{';
    for (const auto& [label, text] : labels) append_label(out_, label, text);
    if (!le.empty()) append_label(out_, "le", le);
    out_ += '}';
  }
  out_.append(" ").append(value).append("\n");
}

void Writer::sample(std::span<const Label> labels, uint64_t value) {
  line("", labels, "", number_text(value));
}

void Writer::sample(std::span<const Label> labels, double value) {
  line("", labels, "", number_text(value));
}

void Writer::histogram(std::span<const Label> labels, const Histogram& histogram) {
  uint64_t cumulative = 0;
  for (size_t i = 0; i < histogram.buckets.size(); ++i) {
    cumulative += histogram.buckets[i];
    const std::string le =
        i < histogram.bounds.size() ? bound_text(histogram.bounds[i], format_) : "+Inf";
    line("_bucket", labels, le, number_text(cumulative));
  }
  line("_sum", labels, "", number_text(histogram.sum));
  line("_count", labels, "", number_text(cumulative));
}

void Writer::finish() {
  if (format_ == Format::kOpenMetrics) out_ += "# EOF\n";
}

}  // namespace baton::protocol::exposition
