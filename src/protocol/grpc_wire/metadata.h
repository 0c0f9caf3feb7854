#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace baton::protocol::grpc_wire {

// A call's header fields in the order in which they came, names in lower case.
class Metadata {
 public:
  void add(std::string_view name, std::string_view value);
  [[nodiscard]] size_t count(std::string_view name) const;
  // The first of that name.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;

  [[nodiscard]] size_t size() const { return fields_.size(); }
  [[nodiscard]] std::string_view name_of(size_t i) const;  // i < size()
  [[nodiscard]] std::string_view value_of(size_t i) const;

 private:
  struct Field {
    uint32_t name_end = 0;
    uint32_t end = 0;
  };

  std::string text_;  // names and values, one after the other
  std::vector<Field> fields_;
};

// The grpc-timeout header: up to eight digits and a unit (H M S m u n). Error: it is none.
[[nodiscard]] Result<Duration, std::string> parse_timeout(std::string_view text);

// A status's message as its header carries it: bytes outside printable ASCII, and '%', as %XX.
[[nodiscard]] std::string encode_message(std::string_view message);

}  // namespace baton::protocol::grpc_wire
