#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "domain/end_reason.h"

namespace baton::service {

// API keys and the tenants that they stand for. Any thread asks.
class AccessControl {
 public:
  using TenantByKey = std::map<std::string, std::string, std::less<>>;

  explicit AccessControl(TenantByKey tenant_by_key) { replace(std::move(tenant_by_key)); }
  // Holds for what is asked from now on. One thread at a time. Former tables are kept: who asks
  // waits for nobody.
  void replace(TenantByKey tenant_by_key);

  // Takes `Authorization: Bearer KEY` or `X-API-Key: KEY`.
  [[nodiscard]] std::optional<Refusal> refuse(std::optional<std::string_view> authorization,
                                              std::optional<std::string_view> api_key) const;
  // "anonymous" for no or an unknown key.
  [[nodiscard]] std::string tenant_of(std::optional<std::string_view> authorization,
                                      std::optional<std::string_view> api_key) const;

 private:
  [[nodiscard]] const std::string* find(std::optional<std::string_view> authorization,
                                        std::optional<std::string_view> api_key) const;
  std::vector<std::unique_ptr<const TenantByKey>> tables_;
  std::atomic<const TenantByKey*> current_{nullptr};  // the last of them
};

}  // namespace baton::service
