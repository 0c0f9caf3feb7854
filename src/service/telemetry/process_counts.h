#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace baton::service {

// What is counted outside the workers' cells, as read for one scrape.
struct ProcessCounts {
  struct Listener {
    std::string name;
    uint64_t open = 0;  // now
    uint64_t accepted = 0;
    uint64_t refused = 0;
    uint64_t timeouts = 0;
    uint64_t bad_requests = 0;
    uint64_t receiving = 0;  // bytes, now
    uint64_t write_stalls = 0;
  };
  struct Log {
    std::string name;
    uint64_t dropped = 0;  // lines
  };
  std::vector<Listener> listeners{};
  std::vector<Log> logs{};
  uint64_t unwritten_bytes = 0;  // of answers, now
  uint64_t decisions_missed = 0;
};

}  // namespace baton::service
