#pragma once
// The models as the workers see them.

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ports/model_directory.h"

namespace baton::service {

// Edited by the controller thread; snapshot() and generation() on any. An edit shows with the next
// publish().
class FleetDirectory final : public ports::ModelDirectory {
 public:
  FleetDirectory() { publish(); }

  [[nodiscard]] std::shared_ptr<const ports::Directory> snapshot() const override {
    return published_.load(std::memory_order_acquire);
  }
  [[nodiscard]] uint64_t generation() const override {
    return generation_.load(std::memory_order_acquire);
  }

  // The entry of a model, made if need be; valid until the next call.
  ports::ModelEntry& edit(const std::string& model);
  void set_version(const std::string& model, ports::ModelVersion version);
  void erase_version(const std::string& model, int64_t version);
  void erase(const std::string& model) { current_.models.erase(model); }
  // Null when there is none.
  [[nodiscard]] const ports::ModelEntry* entry(const std::string& model) const;
  [[nodiscard]] const ports::ModelVersion* version(const std::string& model, int64_t version) const;
  [[nodiscard]] const ports::Directory& current() const { return current_; }
  void complete() { current_.complete = true; }
  void refuse() { current_.accepting = false; }
  void publish();

  // Those who keep snapshots; they outlive every call of when_followed().
  void set_followers(std::vector<ports::DirectoryFollower*> followers) {
    followers_ = std::move(followers);
  }
  // Once every follower has taken up what was published last, `then` is called on the thread of the
  // last one.
  void when_followed(std::function<void()> then) const;

 private:
  ports::Directory current_;
  std::atomic<std::shared_ptr<const ports::Directory>> published_;
  std::atomic<uint64_t> generation_{0};
  std::vector<ports::DirectoryFollower*> followers_;
};

}  // namespace baton::service
