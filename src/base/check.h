#pragma once
// CHECK is for programmer errors, is always on, and is never applied to outside input.

#include <source_location>

namespace baton {

// Prints the condition and the place on stderr, then aborts.
[[noreturn, gnu::cold]] void check_failed(
    const char* condition, std::source_location place = std::source_location::current());

}  // namespace baton

#define BATON_CHECK(condition)           \
  do {                                   \
    if (!(condition)) [[unlikely]]       \
      ::baton::check_failed(#condition); \
  } while (false)
