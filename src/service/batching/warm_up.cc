#include "service/batching/warm_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "service/batching/compare_outputs.h"
#include "service/batching/synthetic_request.h"

namespace baton::service {
namespace {

using Request = std::shared_ptr<const InferRequest>;
using Members = std::vector<const InferRequest*>;
using Outcome = Result<ports::BatchResult, ports::RunFailure>;

// A size is timed often enough for a quartile, and long enough for a short run to be seen.
constexpr uint32_t kFewestRuns = 4;
constexpr uint32_t kMostRuns = 32;
constexpr Duration kTimePerSize = Duration::ms(50);
// So many items are compared one by one with a batch of them.
constexpr size_t kComparedItems = 4;

Members view(const std::vector<Request>& requests, size_t count) {
  Members members;
  for (size_t i = 0; i < count; ++i) members.push_back(requests[i % requests.size()].get());
  return members;
}

std::optional<WarmUpFailure> run_samples(ports::RuntimeInstance& instance,
                                         const ModelConfig& config, const WarmUpOptions& options) {
  static const std::map<std::string, std::string> kNoFiles;
  Random random(options.seed, 1);
  for (const WarmupSample& sample : config.warmups) {
    const auto failure = [&](const std::string& why) {
      return WarmUpFailure{WarmUpFailure::Kind::kSample,
                           fmt::format("model '{}': the warm-up sample '{}' fails: {}", config.name,
                                       sample.name, why)};
    };
    const auto request = sample_request(
        config, sample, options.files == nullptr ? kNoFiles : *options.files, random);
    if (!request) return failure(request.error());
    for (uint32_t i = 0; i < std::max(sample.count, 1U); ++i) {
      const Outcome outcome = instance.run(view({*request}, 1));
      if (!outcome) return failure(outcome.error().message);
    }
  }
  return std::nullopt;
}

uint64_t bytes_of(const InferResult& result) {
  uint64_t bytes = 0;
  for (const Tensor& output : result.outputs) bytes += output.data.size();
  return bytes;
}

// Compares kComparedItems single runs with one batch of the same (server#2135, #2231: all but the
// first item wrong). Sets why it could not compare, or returns what is wrong.
std::optional<WarmUpFailure> check_batch(ports::RuntimeInstance& instance,
                                         const ModelConfig& config,
                                         const std::vector<Request>& requests,
                                         WarmUpReport& report) {
  const size_t count = std::min<size_t>(requests.size(), config.max_batch_size);
  std::vector<InferResult> singles;
  for (size_t i = 0; i <= count; ++i) {
    Outcome single = instance.run(view({requests[i % count]}, 1));
    if (!single) {
      report.not_checked = "single items do not run: " + single.error().message;
      return std::nullopt;
    }
    singles.push_back(std::move(single->results.front()));
  }
  if (first_difference(singles[0], singles[count])) {  // the first item ran twice
    report.not_checked = "the model answers the same input differently each time";
    return std::nullopt;
  }
  const Outcome batch = instance.run(view(requests, count));
  if (!batch) {
    return WarmUpFailure{
        WarmUpFailure::Kind::kBatchFails,
        fmt::format("model '{}' runs single items but not a batch of {}: {}. Its first dimension "
                    "is not a batch dimension: set max_batch_size: 0",
                    config.name, count, batch.error().message)};
  }
  for (size_t i = 0; i < count; ++i) {
    const auto difference = first_difference(singles[i], batch->results[i], config.batch_tolerance);
    if (!difference) continue;
    return WarmUpFailure{
        WarmUpFailure::Kind::kBatchDiffers,
        fmt::format("model '{}' answers item {} differently alone and in a batch of {}: {}. Its "
                    "items are not independent: set max_batch_size: 0, or allow for it with the "
                    "parameter batch_tolerance",
                    config.name, i, count, *difference)};
  }
  report.batch_checked = true;
  return std::nullopt;
}

// Times batches on all instances in turn and fits one curve over them.
class CurveMeasurement {
 public:
  CurveMeasurement(WarmUpInstances instances, const std::vector<Request>& requests,
                   const ports::Clock& clock)
      : instances_(instances), requests_(requests), clock_(clock), began_(clock.now()) {}

  // A sentence when a run fails. The first run of a size is not timed: it allocates.
  std::optional<std::string> run_once(uint32_t size) {
    const Members members = view(requests_, size);
    for (const auto& instance : instances_) {
      const Outcome outcome = instance->run(members);
      if (!outcome) return outcome.error().message;
    }
    return std::nullopt;
  }
  std::optional<std::string> measure(uint32_t size) {
    if (auto failure = run_once(size)) return failure;
    return time(std::array{size});
  }
  // Two sizes in turn, so that what disturbs the one disturbs the other.
  std::optional<std::string> compare(uint32_t size, uint32_t other) {
    return time(std::array{size, other});
  }
  [[nodiscard]] Duration spent() const { return clock_.now() - began_; }
  [[nodiscard]] const LatencyCurve& curve() const { return curve_; }

 private:
  std::optional<std::string> time(std::span<const uint32_t> sizes) {
    for (uint32_t index = 0; index < instances_.size(); ++index) {
      const Instant begin = clock_.now();
      const Duration most = kTimePerSize * static_cast<int64_t>(sizes.size());
      for (uint32_t i = 0; i < kMostRuns; ++i) {
        if (i + 1 >= kFewestRuns && clock_.now() - begin > most) break;
        for (uint32_t size : sizes) {
          const Instant from = clock_.now();
          const Outcome outcome = instances_[index]->run(view(requests_, size));
          if (!outcome) return outcome.error().message;
          samples_.push_back({size, clock_.now() - from, index});
        }
      }
    }
    curve_ = policy::fit_curve(samples_);
    return std::nullopt;
  }

  WarmUpInstances instances_;
  const std::vector<Request>& requests_;
  const ports::Clock& clock_;
  Instant began_;
  std::vector<policy::CurveSample> samples_;
  LatencyCurve curve_;
};

std::optional<std::string> measure_curve(CurveMeasurement& measurement, const ModelConfig& config,
                                         const WarmUpOptions& options, uint64_t bytes_per_item) {
  const bool merges = config.batches() && config.batching.enabled;
  policy::WarmUpLimits limits;
  limits.max_size = merges ? config.max_batch_size : 1;
  limits.budget = options.budget;
  limits.max_bytes = options.max_bytes;
  limits.runs = kFewestRuns;
  const auto next = [&] {
    return policy::next_warm_up_size(measurement.curve(), limits, measurement.spent(),
                                     bytes_per_item);
  };
  for (auto size = next(); size; size = next()) {
    if (auto failure = measurement.measure(*size)) return failure;
    const std::vector<CurvePoint>& points = measurement.curve().points();
    // That a size gains nothing must not be another model's doing, which loads at the same time.
    if (!policy::gain_ended(measurement.curve()) || measurement.spent() > options.budget) continue;
    const uint32_t before = points[points.size() - 2].batch_size;
    if (auto failure = measurement.compare(before, *size)) return failure;
  }
  return std::nullopt;
}

// Sizes that serving will use and the ladder did not reach (U141).
std::optional<std::string> run_sizes(CurveMeasurement& measurement, const ModelConfig& config,
                                     const WarmUpOptions& options, uint64_t bytes_per_item) {
  std::vector<uint32_t> sizes = config.batching.preferred_sizes;
  if (options.known != nullptr) {
    for (const CurvePoint& point : options.known->points()) sizes.push_back(point.batch_size);
  }
  std::ranges::sort(sizes);
  const auto repeated = std::ranges::unique(sizes);
  sizes.erase(repeated.begin(), repeated.end());
  for (uint32_t size : sizes) {
    if (size == 0 || size > config.max_batch_size) continue;
    if (size * std::max<uint64_t>(bytes_per_item, 1) > options.max_bytes) break;
    if (measurement.spent() > options.budget) break;
    if (auto failure = measurement.run_once(size)) return failure;
  }
  return std::nullopt;
}

}  // namespace

Result<WarmUpReport, WarmUpFailure> warm_up(WarmUpInstances instances, const ModelConfig& config,
                                            const WarmUpOptions& options,
                                            const ports::Clock& clock) {
  WarmUpReport report;
  for (const auto& instance : instances) {
    if (auto failure = run_samples(*instance, config, options)) return fail(std::move(*failure));
  }
  Random random(options.seed);
  std::vector<Request> requests;
  while (requests.size() < kComparedItems) {
    requests.push_back(synthetic_request(config, 1, random));
  }
  const Outcome probe = instances.front()->run(view(requests, 1));
  if (!probe) {
    report.not_measured = "the model refuses made-up data: " + probe.error().message;
    report.not_checked = report.not_measured;
    return report;
  }
  if (config.max_batch_size > 1) {
    auto failure = check_batch(*instances.front(), config, requests, report);
    if (failure) return fail(std::move(*failure));
  } else {
    report.not_checked = "the model does not batch";
  }
  const uint64_t bytes = requests.front()->context.bytes + bytes_of(probe->results.front());
  CurveMeasurement measurement(instances, requests, clock);
  std::optional<std::string> failure;
  if (options.known == nullptr) {
    failure = measure_curve(measurement, config, options, bytes);
  }
  if (!failure) failure = run_sizes(measurement, config, options, bytes);
  // Larger batches than the checked one may fail for want of memory; what was measured stands.
  if (failure) report.not_measured = "larger batches fail: " + *failure;
  report.curve = options.known == nullptr ? measurement.curve() : *options.known;
  return report;
}

}  // namespace baton::service
