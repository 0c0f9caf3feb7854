#pragma once
// What a simulated run consists of, and the named ones.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "domain/latency_curve.h"
#include "domain/model.h"
#include "policy/batching/batch_queues.h"

namespace baton::sim {

struct ArrivalSpec {
  enum class Kind : uint8_t { kPoisson, kGamma, kOnOff, kTrace };
  Kind kind = Kind::kPoisson;
  double per_second = 100;  // mean; of the on periods for kOnOff
  double variation = 1;     // kGamma: standard deviation of the gaps over their mean
  Duration mean_on{};       // kOnOff: exponential
  Duration mean_off{};
  std::vector<Duration> trace{};  // kTrace: times from the start, ascending
};

// Gaps between arrivals. Draws only from the stream that it is given.
class Arrivals {
 public:
  explicit Arrivals(ArrivalSpec spec) : spec_(std::move(spec)) {}
  // Nothing: the trace has ended.
  [[nodiscard]] std::optional<Duration> next_gap(Random& random);

 private:
  Duration on_off_gap(Random& random);
  ArrivalSpec spec_;
  Duration on_left_;
  size_t next_ = 0;
};

struct ModelSpec {
  ModelConfig config{};
  LatencyCurve device{};  // how long a batch takes
  bool measured = true;   // the dispatcher knows the curve from the start
  double noise = 0;       // standard deviation of a run's time over its mean
  double failure = 0;     // chance that a run fails
  QueueLimits limits{};
  policy::RankRule rank{};
};

struct TrafficSpec {
  size_t model = 0;
  ArrivalSpec arrivals{};
  uint32_t shapes = 1;       // equally often
  uint64_t most_items = 1;   // of one request, uniform
  uint32_t first_level = 1;  // priorities, uniform from here on; 1 is the most urgent
  uint32_t levels = 1;
  Duration deadline{};  // mean of the end-to-end deadlines, uniform from half to one and a half;
                        // zero: none
  double cancel = 0;    // chance that the client goes away
  Duration cancel_after{};  // mean, exponential
};

struct Scenario {
  std::string name{};
  std::string about{};
  Duration duration = Duration::s(60);
  std::vector<ModelSpec> models{};
  std::vector<TrafficSpec> traffic{};
  uint32_t permits = 2;
  Duration hand_over = Duration::us(15);  // from waking an instance's thread to its running
  Duration starvation_bound = Duration::s(30);
};

// 9.5 M parameters on two threads of an EPYC: 1.3 ms alone, 7 ms for 32.
[[nodiscard]] LatencyCurve mlp_curve();

[[nodiscard]] std::vector<std::string_view> scenario_names();
// "any" draws every knob from the seed. Nothing for an unknown name.
[[nodiscard]] std::optional<Scenario> named_scenario(std::string_view name, uint64_t seed);

}  // namespace baton::sim
