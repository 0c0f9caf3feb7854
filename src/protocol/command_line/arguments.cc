#include "protocol/command_line/arguments.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace baton::protocol::command_line {

Result<Address, std::string> parse_address(const std::string& text) {
  std::string_view rest = text;
  if (rest.starts_with("http://")) rest.remove_prefix(7);
  const size_t colon = rest.rfind(':');
  uint16_t port = 0;
  const std::string_view digits =
      colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0) {
    return fail("\"" + text + "\" is no address such as 127.0.0.1:8000");
  }
  std::string host(rest.substr(0, colon));
  if (host == "localhost") host = "127.0.0.1";
  return Address{std::move(host), port};
}

Result<std::pair<std::string, Shape>, std::string> parse_shape(const std::string& text) {
  const size_t equals = text.rfind('=');
  const auto bad = [&] { return fail("\"" + text + "\" is no shape such as input=1,3,224,224"); };
  if (equals == std::string::npos || equals == 0 || text.ends_with(',')) return bad();
  Shape dims;
  const char* at = text.data() + equals + 1;
  const char* const last = text.data() + text.size();
  while (at < last) {
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(at, last, dim);
    if (error != std::errc() || dim < 0 || (end != last && *end != ',')) return bad();
    dims.push_back(dim);
    at = end == last ? last : end + 1;
  }
  return std::pair(text.substr(0, equals), dims);
}

Result<void, std::string> close_shapes(std::vector<TensorSpec>& inputs, int64_t rows,
                                       const std::vector<std::string>& shapes) {
  for (TensorSpec& input : inputs) {
    if (!input.dims.empty() && input.dims.front() < 0) input.dims.front() = rows;
  }
  for (const std::string& text : shapes) {
    BATON_ASSIGN(auto shape, parse_shape(text));
    const auto input = std::ranges::find(inputs, shape.first, &TensorSpec::name);
    if (input == inputs.end()) return fail("the model has no input \"" + shape.first + "\"");
    input->dims = std::move(shape.second);
  }
  for (TensorSpec& input : inputs) {
    std::ranges::replace_if(input.dims, [](int64_t dim) { return dim < 0; }, 1);
    if (!element_count(input.dims)) return fail("input \"" + input.name + "\" would be too large");
  }
  return {};
}

}  // namespace baton::protocol::command_line
