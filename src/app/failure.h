#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "base/result.h"

namespace baton::app {

// Why a command ends, and with which status.
struct Failure {
  int status = 1;  // of the process: 2 when the command line is wrong
  std::string message;
};

template <class T>
Result<T, Failure> or_status(Result<T, std::string> result, int status) {
  if (!result.has_value()) return fail(Failure{status, std::move(result).error()});
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return std::move(*result);
  }
}

}  // namespace baton::app
