#include "service/access/access_control.h"

#include <algorithm>

namespace baton::service {
namespace {

// Compares in time that depends on the lengths alone, so that a key cannot be guessed byte by byte.
bool equal_keys(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |=
        static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  }
  return difference == 0;
}

std::string_view presented_key(std::optional<std::string_view> authorization,
                               std::optional<std::string_view> api_key) {
  constexpr std::string_view kBearer = "bearer ";  // RFC 9110, 11.1: in any case
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  if (authorization && authorization->size() >= kBearer.size() &&
      std::ranges::equal(authorization->substr(0, kBearer.size()), kBearer, {}, lower)) {
    return authorization->substr(kBearer.size());
  }
  return api_key.value_or(std::string_view());
}

}  // namespace

void AccessControl::replace(TenantByKey tenant_by_key) {
  if (!tables_.empty() && *tables_.back() == tenant_by_key) return;
  tables_.push_back(std::make_unique<const TenantByKey>(std::move(tenant_by_key)));
  current_.store(tables_.back().get(), std::memory_order_release);
}

const std::string* AccessControl::find(std::optional<std::string_view> authorization,
                                       std::optional<std::string_view> api_key) const {
  const std::string_view key = presented_key(authorization, api_key);
  const std::string* tenant = nullptr;
  for (const auto& [known, name] : *current_.load(std::memory_order_acquire)) {
    if (equal_keys(known, key)) tenant = &name;
  }
  return tenant;
}

std::optional<Refusal> AccessControl::refuse(std::optional<std::string_view> authorization,
                                             std::optional<std::string_view> api_key) const {
  if (find(authorization, api_key) != nullptr) return std::nullopt;
  return Refusal{EndReason::kUnauthorized,
                 "a valid API key is needed: Authorization: Bearer KEY, or X-API-Key: KEY",
                 {}};
}

std::string AccessControl::tenant_of(std::optional<std::string_view> authorization,
                                     std::optional<std::string_view> api_key) const {
  const std::string* tenant = find(authorization, api_key);
  return tenant != nullptr ? *tenant : "anonymous";
}

}  // namespace baton::service
