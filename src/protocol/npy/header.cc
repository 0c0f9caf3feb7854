#include "protocol/npy/header.h"

#include <charconv>
#include <optional>

namespace baton::protocol::npy {
namespace {

constexpr size_t kMostDims = 64;  // NumPy's own limit

class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : rest_(text) {}

  Result<Header, std::string> read() {
    if (!take('{')) return malformed();
    while (!take('}')) {
      const auto key = take_string();
      if (!key || !take(':')) return malformed();
      BATON_TRY(read_value(*key));
      if (!take(',') && !next_is('}')) return malformed();
    }
    skip_space();
    if (!rest_.empty() || !has_descr_ || !has_order_ || !has_shape_) return malformed();
    return std::move(header_);
  }

 private:
  static std::unexpected<std::string> malformed() {
    return fail(std::string("its .npy header cannot be read"));
  }

  Result<void, std::string> read_value(std::string_view key) {
    if (key == "descr") {
      if (next_is('[')) return fail(std::string("it holds structures; save one field of them"));
      const auto descr = take_string();
      if (!descr || has_descr_) return malformed();
      header_.descr = *descr;
      has_descr_ = true;
      return {};
    }
    if (key == "fortran_order" && !has_order_) {
      has_order_ = true;
      header_.fortran_order = take_word("True");
      if (header_.fortran_order || take_word("False")) return {};
    }
    if (key == "shape" && !has_shape_ && read_shape()) {
      has_shape_ = true;
      return {};
    }
    return malformed();
  }

  // "()", "(3,)" or "(3, 4)".
  bool read_shape() {
    if (!take('(')) return false;
    while (!take(')')) {
      skip_space();
      int64_t dim = 0;
      const char* const last = rest_.data() + rest_.size();
      const auto [end, error] = std::from_chars(rest_.data(), last, dim);
      if (error != std::errc() || dim < 0 || header_.shape.size() == kMostDims) return false;
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      header_.shape.push_back(dim);
      if (!take(',') && !next_is(')')) return false;
    }
    return true;
  }

  void skip_space() {
    const size_t at = rest_.find_first_not_of(" \t\n");
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at);
  }

  bool next_is(char wanted) {
    skip_space();
    return rest_.starts_with(wanted);
  }

  bool take(char wanted) {
    if (!next_is(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool take_word(std::string_view word) {
    skip_space();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  // Between single or double quotes; what these files hold needs no escapes.
  std::optional<std::string_view> take_string() {
    skip_space();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
    const size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::string_view rest_;
  Header header_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

}  // namespace

Result<Header, std::string> parse_header(std::string_view text) {
  return HeaderReader(text).read();
}

}  // namespace baton::protocol::npy
