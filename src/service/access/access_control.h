#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "domain/end_reason.h"

namespace baton::service {

// A static table of API keys and the tenants that they stand for. Immutable after construction: any
// thread.
class AccessControl {
 public:
  explicit AccessControl(std::map<std::string, std::string, std::less<>> tenant_by_key)
      : tenant_by_key_(std::move(tenant_by_key)) {}

  // Takes `Authorization: Bearer KEY` or `X-API-Key: KEY`.
  [[nodiscard]] std::optional<Refusal> refuse(std::optional<std::string_view> authorization,
                                              std::optional<std::string_view> api_key) const;
  // "anonymous" for no or an unknown key.
  [[nodiscard]] std::string tenant_of(std::optional<std::string_view> authorization,
                                      std::optional<std::string_view> api_key) const;

 private:
  [[nodiscard]] const std::string* find(std::optional<std::string_view> authorization,
                                        std::optional<std::string_view> api_key) const;
  std::map<std::string, std::string, std::less<>> tenant_by_key_;
};

}  // namespace baton::service
