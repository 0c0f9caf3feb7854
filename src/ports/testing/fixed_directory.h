#pragma once

#include <memory>

#include "ports/model_directory.h"

namespace baton::ports::testing {

// The directory that the test wrote; it counts `number` up when it changes something.
class FixedDirectory final : public ModelDirectory {
 public:
  FixedDirectory() { current.complete = true; }
  [[nodiscard]] std::shared_ptr<const Directory> snapshot() const override {
    return std::make_shared<const Directory>(current);
  }
  [[nodiscard]] uint64_t generation() const override { return number; }

  Directory current;
  uint64_t number = 1;
};

}  // namespace baton::ports::testing
