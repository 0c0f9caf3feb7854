#include "service/batching/dispatcher_setup.h"

namespace baton::service {

DispatcherSetup setup_of(const DispatcherOptions& options) {
  const auto& [config, limits, curve, rank, hand_over] = options;
  DispatcherSetup setup;
  setup.config.name = config.name;
  setup.config.max_batch_size = config.max_batch_size;
  setup.config.instance_count = config.instance_count;
  setup.config.batching = config.batching;
  setup.limits = limits;
  setup.curve = curve;
  setup.patience = rank.patience;
  setup.ageing = rank.ageing;
  setup.hand_over = hand_over;
  return setup;
}

DispatcherOptions options_of(const DispatcherSetup& setup) {
  const auto& [config, limits, curve, patience, ageing, hand_over] = setup;
  return {.config = config,
          .limits = limits,
          .curve = curve,
          .rank = {.patience = patience, .ageing = ageing},
          .hand_over = hand_over};
}

}  // namespace baton::service
