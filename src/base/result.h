#pragma once
// Errors as values. Each room has one closed error type; the value and the error never mix.

#include <expected>
#include <utility>

namespace baton {

template <class T, class E>
using Result = std::expected<T, E>;

// Shortens `return std::unexpected(E{...})` where E is deduced from the argument. Cold, so that the
// compiler lays what leads here out of the way of requests that go well.
template <class E>
[[nodiscard, gnu::cold, gnu::noinline]] constexpr std::unexpected<std::decay_t<E>> fail(E&& error) {
  return std::unexpected<std::decay_t<E>>(std::forward<E>(error));
}

}  // namespace baton

// Evaluates a Result expression; returns its error from the enclosing function, else yields
// nothing.
#define BATON_TRY(expression)                                                               \
  do {                                                                                      \
    if (auto baton_try_result = (expression); !baton_try_result.has_value()) [[unlikely]] { \
      return std::unexpected(std::move(baton_try_result).error());                          \
    }                                                                                       \
  } while (false)

#define BATON_CONCAT_INNER(a, b) a##b
#define BATON_CONCAT(a, b) BATON_CONCAT_INNER(a, b)

// BATON_ASSIGN(auto value, expression): value from a Result, or return its error.
#define BATON_ASSIGN(declaration, expression) \
  BATON_ASSIGN_INNER(BATON_CONCAT(baton_result_, __LINE__), declaration, expression)
#define BATON_ASSIGN_INNER(name, declaration, expression) \
  auto name = (expression);                               \
  if (!name.has_value()) [[unlikely]]                     \
    return std::unexpected(std::move(name).error());      \
  declaration = *std::move(name)
