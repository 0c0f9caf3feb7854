#include "adapters/load/arrivals.h"

#include <algorithm>
#include <charconv>

namespace baton::adapters::load {
namespace {

std::string_view take_until(std::string_view& text, char end) {
  const size_t found = text.find(end);
  const std::string_view taken = text.substr(0, found);
  text = found == std::string_view::npos ? std::string_view() : text.substr(found + 1);
  return taken;
}

std::string_view take_line(std::string_view& text) {
  std::string_view line = take_until(text, '\n');
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string_view field(std::string_view line, size_t index) {
  for (size_t i = 0; i < index; ++i) take_until(line, ',');
  return take_until(line, ',');
}

Result<size_t, std::string> column_of(std::string_view header, std::string_view name) {
  for (size_t i = 0; !header.empty(); ++i) {
    if (take_until(header, ',') == name) return i;
  }
  return fail("the trace's first line names no column \"" + std::string(name) + "\"");
}

Result<std::vector<double>, std::string> read_seconds(std::string_view csv) {
  BATON_ASSIGN(const size_t column, column_of(take_line(csv), "arrival_s"));
  std::vector<double> seconds;
  for (size_t number = 2; !csv.empty(); ++number) {
    const std::string_view line = take_line(csv);
    if (line.empty()) continue;
    const std::string_view text = field(line, column);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value >= 0)) {
      return fail("line " + std::to_string(number) + " of the trace: \"" + std::string(text) +
                  "\" is no time in seconds");
    }
    seconds.push_back(value);
  }
  if (seconds.empty()) return fail(std::string("the trace holds no arrivals"));
  std::ranges::sort(seconds);
  return seconds;
}

}  // namespace

Schedule constant_arrivals(double rate, Duration length) {
  const auto count = static_cast<size_t>(length.seconds() * rate);
  Schedule schedule;
  schedule.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    schedule.push_back(Duration::from_seconds(static_cast<double>(i) / rate));
  }
  return schedule;
}

Schedule poisson_arrivals(double rate, Duration length, Random& random) {
  Schedule schedule;
  schedule.reserve(static_cast<size_t>(length.seconds() * rate * 1.1) + 16);
  for (double at = random.exponential(1 / rate); at < length.seconds();) {
    schedule.push_back(Duration::from_seconds(at));
    at += random.exponential(1 / rate);
  }
  return schedule;
}

Result<Schedule, std::string> trace_arrivals(std::string_view csv, double rate, Duration length) {
  BATON_ASSIGN(const std::vector<double> seconds, read_seconds(csv));
  const double span = seconds.back() - seconds.front();
  double stretch = 1;
  if (rate > 0 && span > 0) stretch = static_cast<double>(seconds.size() - 1) / rate / span;
  Schedule schedule;
  for (const double at : seconds) {
    const double shifted = (at - seconds.front()) * stretch;
    if (shifted >= length.seconds()) break;
    schedule.push_back(Duration::from_seconds(shifted));
  }
  return schedule;
}

}  // namespace baton::adapters::load
