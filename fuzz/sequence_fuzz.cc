// Sequences: parameters of any text never crash the decoder, and whatever steps come, end, fail,
// leave or grow idle, each accepted one leaves exactly once and a sequence runs one at a time.

#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "protocol/oip/infer_codec.h"
#include "service/sequences/sequence_keeper.h"

namespace {

using namespace baton;

void require(bool condition) {
  if (!condition) std::abort();
}

void decode_parameters(std::string_view parameters) {
  std::string text = "{\"inputs\":[],\"parameters\":{" + std::string(parameters) + "}}";
  const size_t size = text.size();
  text.append(64, '\0');
  static protocol::json::JsonParser parser;
  const auto decoded = protocol::oip::decode_infer_request(
      {std::string_view(text).substr(0, size), nullptr, std::nullopt}, parser);
  if (!decoded.has_value()) return require(!decoded.error().message.empty());
  const CorrelationId& id = decoded->request.sequence.id;
  require(id.text.size() <= kMostCorrelationBytes && (id.text.empty() || id.number == 0));
}

service::SequenceKeeperOptions options() {
  service::SequenceKeeperOptions made;
  made.config.name = "m";
  made.config.max_batch_size = 2;
  made.config.sequences.emplace().idle = Duration::us(40);
  made.config.sequences->states = {{.input = "s",
                                    .output = "t",
                                    .type = DataType::kUint8,
                                    .dims = {-1},
                                    .first = {.dims = {1}},
                                    .first_bytes = std::make_shared<const std::string>(1, '\0')}};
  made.state_bytes_max = 64;
  made.beginnings_max = 3;
  made.steps_max = 12;
  return made;
}

// A keeper under the events that bytes describe.
class Play {
 public:
  void event(uint8_t what, uint8_t detail) {
    now_ = now_ + Duration::us(detail >> 4);
    switch (what % 8) {
      case 0:
      case 1:
      case 2:
        return arrive(detail);
      case 3:
      case 4:
        return end(detail, true);
      case 5:
        return end(detail, false);
      case 6:
        return leave(detail);
      default:
        return follow([&](ports::SequenceTurn& turn) { keeper_.expire(now_, turn); });
    }
  }
  void close() {
    follow([&](ports::SequenceTurn& turn) { keeper_.close(turn); });
    while (!running_.empty()) end(0, false);
    require(steps_.empty() && keeper_.stats().live == 0 && keeper_.stats().state_bytes == 0);
  }

 private:
  template <class Event>
  void follow(Event event) {
    ports::SequenceTurn turn;
    event(turn);
    for (const auto& run : turn.run) {
      require(steps_.contains(run.step) && run.request->inputs.size() == 1);
      const uint64_t id = steps_.at(run.step);
      for (const auto step : running_) require(steps_.at(step) != id);
      running_.insert(run.step);
    }
    for (const auto& lost : turn.lost) {
      require(!running_.contains(lost.step) && steps_.erase(lost.step) == 1);
      require(!lost.refusal.message.empty());
    }
    require(keeper_.running_steps() == running_.size());
    require(keeper_.waiting_steps() + running_.size() == steps_.size());
    require(keeper_.stats().live <= 2 && keeper_.stats().state_bytes <= 64);
  }
  void arrive(uint8_t detail) {
    auto request = std::make_shared<InferRequest>();
    request->sequence = {.id = {.number = 1U + (detail & 3U)},
                         .start = (detail & 4U) != 0,
                         .end = (detail & 8U) != 0};
    const ports::StepNumber step = next_++;
    steps_.emplace(step, request->sequence.id.number);
    follow([&](ports::SequenceTurn& turn) {
      const auto refusal = keeper_.arrive(step, std::move(request), now_, turn);
      if (refusal) steps_.erase(step);
      require(!refusal || !refusal->message.empty());
    });
  }
  void end(uint8_t detail, bool succeeds) {
    if (running_.empty()) return;
    auto which = running_.begin();
    std::advance(which, detail % running_.size());
    const ports::StepNumber step = *which;
    running_.erase(which);
    steps_.erase(step);
    auto data = std::make_shared<std::string>(detail & 15U, 'x');
    InferResult result;
    result.outputs.push_back({.name = "t",
                              .type = DataType::kUint8,
                              .shape = {1, static_cast<int64_t>(data->size())},
                              .data = std::as_bytes(std::span(*data))});
    follow([&](ports::SequenceTurn& turn) {
      static_cast<void>(keeper_.ended(step, succeeds ? &result : nullptr, now_, turn));
    });
  }
  void leave(uint8_t detail) {
    if (steps_.empty()) return;
    auto which = steps_.begin();
    std::advance(which, detail % steps_.size());
    const ports::StepNumber step = which->first;
    follow([&](ports::SequenceTurn& turn) {
      const bool left = keeper_.leave(step, now_, turn);
      require(left != running_.contains(step));
      if (left) steps_.erase(step);
    });
  }

  service::SequenceKeeper keeper_{options()};
  Instant now_;
  ports::StepNumber next_ = 1;
  std::map<ports::StepNumber, uint64_t> steps_;
  std::set<ports::StepNumber> running_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  if (data[0] == '"') {
    decode_parameters({reinterpret_cast<const char*>(data), size});
    return 0;
  }
  Play play;
  for (size_t i = 0; i + 1 < size; i += 2) play.event(data[i], data[i + 1]);
  play.close();
  return 0;
}
