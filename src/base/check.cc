#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace baton {

void check_failed(const char* condition, std::source_location place) {
  std::fprintf(stderr, "CHECK failed: %s at %s:%u in %s\n", condition, place.file_name(),
               static_cast<unsigned>(place.line()), place.function_name());
  std::abort();
}

}  // namespace baton
