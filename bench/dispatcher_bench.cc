// Nanoseconds that one call costs inside the dispatcher: what a model's lock is held for.

#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "service/batching/model_dispatcher.h"

namespace {

using namespace baton;

struct NoSink final : ports::DecisionSink {
  void record(const Decision&) override {}
};

// `depth` calls of `shapes` layouts are queued, then served in batches. Nanoseconds a call.
double nanoseconds_per_call(size_t depth, uint64_t shapes, size_t rounds) {
  NoSink sink;
  service::DispatcherOptions options;
  options.config.name = "bench";
  options.config.max_batch_size = 32;
  options.config.batching.enabled = true;
  service::ModelDispatcher dispatcher(std::move(options), sink);
  std::vector<std::shared_ptr<const InferRequest>> requests;
  for (uint64_t i = 0; i < shapes; ++i) {
    InferRequest request;
    request.inputs = {
        {.name = "x", .type = DataType::kFp32, .shape = {1, int64_t(i) + 1}, .data = {}}};
    request.batch_key = layout_hash(request, true);
    requests.push_back(std::make_shared<const InferRequest>(std::move(request)));
  }
  ports::Batch batch;
  std::vector<ports::EndedCall> ended;
  Instant now = Instant::from_ns(1);
  dispatcher.next(0, now, batch, ended);
  std::chrono::nanoseconds spent{};
  for (size_t round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (size_t i = 0; i < depth; ++i) {
      now = now + Duration::us(10);
      ports::DispatchedCall call;
      call.call.request = requests[i % shapes];
      dispatcher.submit(call, now);
    }
    while (dispatcher.queued_calls() > 0) {
      dispatcher.next(0, now, batch, ended);
      Result<ports::BatchResult, ports::RunFailure> outcome;
      outcome->results.resize(batch.members.size());
      now = now + Duration::ms(1);
      dispatcher.finish(0, batch, outcome, now, ended);
      batch.members.clear();
      ended.clear();
    }
    dispatcher.next(0, now, batch, ended);
    spent += std::chrono::steady_clock::now() - begin;
  }
  return static_cast<double>(spent.count()) / static_cast<double>(depth * rounds);
}

}  // namespace

int main() {
  std::printf("%8s %8s %12s\n", "queued", "shapes", "ns a call");
  for (const auto& [depth, shapes] :
       {std::pair<size_t, uint64_t>{1, 1}, {32, 1}, {32, 2}, {1024, 8}, {8000, 1}, {8000, 64}}) {
    std::printf("%8zu %8llu %12.0f\n", depth, static_cast<unsigned long long>(shapes),
                nanoseconds_per_call(depth, shapes, 200'000 / depth));
  }
}
