#include "protocol/model_config/sequences.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "baton_inference.pb.h"
#include "protocol/model_config/data_types.h"

namespace baton::protocol::model_config {
namespace {

using Batching = inference::ModelSequenceBatching;
using Control = Batching::Control;

constexpr uint64_t kMostDelayUs = 60'000'000;
constexpr uint64_t kMostIdleUs = 86'400'000'000;
constexpr uint32_t kMostCandidates = 1 << 20;

LoadFailure wrong(std::string message) {
  return {"config.pbtxt: sequence_batching: " + std::move(message)};
}

struct KindRow {
  Control::Kind proto;
  SequenceControl::Kind kind;
};
constexpr std::array kKinds = {
    KindRow{Control::CONTROL_SEQUENCE_START, SequenceControl::Kind::kStart},
    KindRow{Control::CONTROL_SEQUENCE_READY, SequenceControl::Kind::kReady},
    KindRow{Control::CONTROL_SEQUENCE_END, SequenceControl::Kind::kEnd},
    KindRow{Control::CONTROL_SEQUENCE_CORRID, SequenceControl::Kind::kCorrelationId},
};

Control::Kind to_config(SequenceControl::Kind kind) {
  return std::ranges::find(kKinds, kind, &KindRow::kind)->proto;
}

template <class T>
T value_of(const std::string& bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

template <class T, class Values>
void set_pair(const Values& values, DataType type, SequenceControl& control) {
  control.type = type;
  control.off = value_bytes(static_cast<T>(values.Get(0)));
  control.on = value_bytes(static_cast<T>(values.Get(1)));
}

bool is_correlation_type(DataType type) {
  constexpr std::array kTypes = {DataType::kUint64, DataType::kInt64, DataType::kUint32,
                                 DataType::kInt32, DataType::kBytes};
  return std::ranges::find(kTypes, type) != kTypes.end();
}

Result<void, LoadFailure> read_values(const Control& proto, const std::string& label,
                                      SequenceControl& control) {
  const int pairs = static_cast<int>(proto.int32_false_true_size() > 0) +
                    static_cast<int>(proto.fp32_false_true_size() > 0) +
                    static_cast<int>(proto.bool_false_true_size() > 0);
  if (control.kind == SequenceControl::Kind::kCorrelationId) {
    const auto type = from_config(proto.data_type());
    if (pairs > 0 || !type || !is_correlation_type(*type)) {
      return fail(wrong(label + " takes a data_type, TYPE_UINT64, TYPE_INT64, TYPE_UINT32, "
                                "TYPE_INT32 or TYPE_STRING, and no false_true values"));
    }
    control.type = *type;
    return {};
  }
  const int values =
      proto.int32_false_true_size() + proto.fp32_false_true_size() + proto.bool_false_true_size();
  if (pairs != 1 || values != 2) {
    return fail(wrong(label + " takes two values in one of int32_false_true, fp32_false_true and "
                              "bool_false_true"));
  }
  if (proto.int32_false_true_size() == 2) {
    set_pair<int32_t>(proto.int32_false_true(), DataType::kInt32, control);
  } else if (proto.fp32_false_true_size() == 2) {
    set_pair<float>(proto.fp32_false_true(), DataType::kFp32, control);
  } else {
    set_pair<uint8_t>(proto.bool_false_true(), DataType::kBool, control);
  }
  return {};
}

Result<SequenceControl, LoadFailure> read_control(const Batching::ControlInput& proto) {
  if (proto.name().empty()) return fail(wrong("a control_input has no name"));
  const std::string label = "control_input \"" + proto.name() + "\"";
  if (proto.control_size() != 1) {
    return fail(wrong(label + " has " + std::to_string(proto.control_size()) +
                      " controls; a tensor carries one"));
  }
  SequenceControl control;
  control.input = proto.name();
  const auto row = std::ranges::find(kKinds, proto.control(0).kind(), &KindRow::proto);
  if (row == kKinds.end()) return fail(wrong(label + " has an unknown kind"));
  control.kind = row->kind;
  BATON_TRY(read_values(proto.control(0), label, control));
  return control;
}

Result<Shape, LoadFailure> read_dims(const google::protobuf::RepeatedField<int64_t>& dims,
                                     int64_t least, const std::string& label) {
  Shape shape(dims.begin(), dims.end());
  for (const int64_t dim : shape) {
    if (dim >= least && dim != 0) continue;
    return fail(wrong(label + " has dimension " + std::to_string(dim)));
  }
  return shape;
}

// Where nothing is said, zeros, with 1 for every dimension that may be anything.
Result<FirstState, LoadFailure> read_first(const Batching::State& proto, const SequenceState& state,
                                           const std::string& label) {
  FirstState first;
  first.dims = state.dims;
  std::ranges::replace(first.dims, -1, 1);
  if (proto.initial_state_size() == 0) return first;
  if (proto.initial_state_size() > 1) {
    return fail(wrong(label + " has more than one initial_state"));
  }
  const Batching::InitialState& initial = proto.initial_state(0);
  if (from_config(initial.data_type()) != state.type) {
    return fail(wrong(label + ": the data_type of its initial_state is another one"));
  }
  if (!initial.has_data_file() && !initial.zero_data()) {
    return fail(wrong(label + ": initial_state needs zero_data: true or a data_file"));
  }
  BATON_ASSIGN(first.dims, read_dims(initial.dims(), 1, label + ": initial_state"));
  const bool fits = std::ranges::equal(
      first.dims, state.dims, [](int64_t found, int64_t dim) { return dim == -1 || dim == found; });
  if (!fits || !element_count(first.dims)) {
    return fail(wrong(label + ": initial_state has dims " + shape_text(first.dims) +
                      ", the state has " + shape_text(state.dims)));
  }
  if (initial.has_data_file()) first.file = "initial_state/" + initial.data_file();
  return first;
}

Result<SequenceState, LoadFailure> read_state(const Batching::State& proto) {
  if (proto.input_name().empty() || proto.output_name().empty()) {
    return fail(wrong("a state needs input_name and output_name"));
  }
  SequenceState state;
  state.input = proto.input_name();
  state.output = proto.output_name();
  const std::string label = "state \"" + state.input + "\"";
  const auto type = from_config(proto.data_type());
  if (!type) return fail(wrong(label + " has no data_type"));
  if (*type == DataType::kBytes)
    return fail(wrong(label + " is of TYPE_STRING, which no state is"));
  state.type = *type;
  BATON_ASSIGN(state.dims, read_dims(proto.dims(), -1, label));
  BATON_ASSIGN(state.first, read_first(proto, state, label));
  return state;
}

// A tensor has one source.
Result<void, LoadFailure> check_names(const SequenceConfig& sequences, const ModelConfig& config) {
  std::set<std::string> inputs;
  std::set<std::string> outputs;
  for (const TensorSpec& input : config.inputs) inputs.insert(input.name);
  for (const SequenceControl& control : sequences.controls) {
    if (inputs.insert(control.input).second) continue;
    return fail(wrong("control_input \"" + control.input +
                      "\" is an input that clients send, or stands twice"));
  }
  for (const SequenceState& state : sequences.states) {
    if (!inputs.insert(state.input).second) {
      return fail(wrong("state \"" + state.input +
                        "\" is an input that clients send, a control, or stands twice"));
    }
    if (!outputs.insert(state.output).second) {
      return fail(wrong("output_name \"" + state.output + "\" stands twice"));
    }
  }
  return {};
}

Result<void, LoadFailure> read_direct(const Batching::StrategyDirect& proto,
                                      SequenceConfig& sequences, BatchingConfig& batching) {
  const float share = proto.minimum_slot_utilization();
  if (!(share >= 0 && share <= 1)) {
    return fail(wrong("direct.minimum_slot_utilization is from 0 to 1"));
  }
  if (proto.max_queue_delay_microseconds() > kMostDelayUs) {
    return fail(wrong("direct.max_queue_delay_microseconds is at most 60000000"));
  }
  sequences.minimum_slot_utilization = share;
  batching.max_delay = Duration::us(static_cast<int64_t>(proto.max_queue_delay_microseconds()));
  return {};
}

Result<void, LoadFailure> read_oldest(const Batching::StrategyOldest& proto,
                                      SequenceConfig& sequences, ModelConfig& config) {
  sequences.strategy = SequenceConfig::Strategy::kOldest;
  if (proto.max_candidate_sequences() < 1 ||
      proto.max_candidate_sequences() > static_cast<int32_t>(kMostCandidates)) {
    return fail(wrong("oldest.max_candidate_sequences is " +
                      std::to_string(proto.max_candidate_sequences()) + "; expected 1 to " +
                      std::to_string(kMostCandidates)));
  }
  sequences.max_candidates = static_cast<uint32_t>(proto.max_candidate_sequences());
  if (proto.max_queue_delay_microseconds() > kMostDelayUs) {
    return fail(wrong("oldest.max_queue_delay_microseconds is at most 60000000"));
  }
  BatchingConfig& batching = config.batching;
  batching.max_delay = Duration::us(static_cast<int64_t>(proto.max_queue_delay_microseconds()));
  batching.preserve_ordering = proto.preserve_ordering();
  for (const int32_t size : proto.preferred_batch_size()) {
    if (size < 1 || static_cast<uint32_t>(size) > std::max(config.max_batch_size, 1U)) {
      return fail(wrong("oldest.preferred_batch_size " + std::to_string(size) +
                        " is not within 1 and max_batch_size"));
    }
    batching.preferred_sizes.push_back(static_cast<uint32_t>(size));
  }
  std::ranges::sort(batching.preferred_sizes);
  return {};
}

std::string kind_name(const SequenceControl& control) {
  return Control::Kind_Name(to_config(control.kind));
}

std::string type_name(DataType type) {
  return inference::DataType_Name(model_config::to_config(type));
}

void write_shape(JsonWriter& json, const Shape& dims) {
  json.key("dims").begin_array();
  for (const int64_t dim : dims) json.number(dim);
  json.end_array();
}

void write_values(JsonWriter& json, const SequenceControl& control) {
  switch (control.type) {
    case DataType::kInt32:
      json.key("int32_false_true").begin_array();
      json.number(int64_t{value_of<int32_t>(control.off)});
      json.number(int64_t{value_of<int32_t>(control.on)});
      break;
    case DataType::kFp32:
      json.key("fp32_false_true").begin_array();
      json.number(double{value_of<float>(control.off)});
      json.number(double{value_of<float>(control.on)});
      break;
    default:
      json.key("bool_false_true").begin_array();
      json.boolean(value_of<uint8_t>(control.off) != 0);
      json.boolean(value_of<uint8_t>(control.on) != 0);
      break;
  }
  json.end_array();
}

void write_control(JsonWriter& json, const SequenceControl& control) {
  json.begin_object().field("name", control.input).key("control").begin_array().begin_object();
  json.field("kind", kind_name(control));
  if (control.kind == SequenceControl::Kind::kCorrelationId) {
    json.field("data_type", type_name(control.type));
  } else {
    write_values(json, control);
  }
  json.end_object().end_array().end_object();
}

void write_state(JsonWriter& json, const SequenceState& state) {
  json.begin_object().field("input_name", state.input).field("output_name", state.output);
  json.field("data_type", type_name(state.type));
  write_shape(json, state.dims);
  json.key("initial_state").begin_array().begin_object();
  json.field("data_type", type_name(state.type));
  write_shape(json, state.first.dims);
  if (state.first.file.empty()) {
    json.field("zero_data", true);
  } else {
    json.field("data_file", state.first.file.substr(state.first.file.find('/') + 1));
  }
  json.end_object().end_array().end_object();
}

void set_control(const SequenceControl& control, Batching::ControlInput& proto) {
  proto.set_name(control.input);
  Control& out = *proto.add_control();
  out.set_kind(to_config(control.kind));
  if (control.kind == SequenceControl::Kind::kCorrelationId) {
    out.set_data_type(model_config::to_config(control.type));
  } else if (control.type == DataType::kInt32) {
    out.add_int32_false_true(value_of<int32_t>(control.off));
    out.add_int32_false_true(value_of<int32_t>(control.on));
  } else if (control.type == DataType::kFp32) {
    out.add_fp32_false_true(value_of<float>(control.off));
    out.add_fp32_false_true(value_of<float>(control.on));
  } else {
    out.add_bool_false_true(value_of<uint8_t>(control.off) != 0);
    out.add_bool_false_true(value_of<uint8_t>(control.on) != 0);
  }
}

void set_state(const SequenceState& state, Batching::State& proto) {
  proto.set_input_name(state.input);
  proto.set_output_name(state.output);
  proto.set_data_type(model_config::to_config(state.type));
  for (const int64_t dim : state.dims) proto.add_dims(dim);
  Batching::InitialState& initial = *proto.add_initial_state();
  initial.set_data_type(model_config::to_config(state.type));
  for (const int64_t dim : state.first.dims) initial.add_dims(dim);
  if (state.first.file.empty()) {
    initial.set_zero_data(true);
  } else {
    initial.set_data_file(state.first.file.substr(state.first.file.find('/') + 1));
  }
}

}  // namespace

Result<void, LoadFailure> read_sequences(const inference::ModelConfig& proto, ModelConfig& config) {
  if (!proto.has_sequence_batching()) return {};
  const Batching& batching = proto.sequence_batching();
  SequenceConfig sequences;
  if (batching.max_sequence_idle_microseconds() > kMostIdleUs) {
    return fail(wrong("max_sequence_idle_microseconds is at most 86400000000"));
  }
  if (batching.max_sequence_idle_microseconds() > 0) {
    sequences.idle = Duration::us(static_cast<int64_t>(batching.max_sequence_idle_microseconds()));
  }
  for (const auto& control : batching.control_input()) {
    BATON_ASSIGN(sequences.controls.emplace_back(), read_control(control));
  }
  for (const auto& state : batching.state()) {
    BATON_ASSIGN(sequences.states.emplace_back(), read_state(state));
  }
  BATON_TRY(check_names(sequences, config));
  config.batching.enabled = config.max_batch_size > 0;
  if (batching.has_oldest()) {
    BATON_TRY(read_oldest(batching.oldest(), sequences, config));
  } else {
    BATON_TRY(read_direct(batching.direct(), sequences, config.batching));
  }
  config.sequences = std::move(sequences);
  return {};
}

void set_sequences(const ModelConfig& config, Batching& proto) {
  const SequenceConfig& sequences = *config.sequences;
  proto.set_max_sequence_idle_microseconds(static_cast<uint64_t>(sequences.idle.us()));
  const auto delay = static_cast<uint64_t>(config.batching.max_delay.us());
  if (sequences.strategy == SequenceConfig::Strategy::kDirect) {
    proto.mutable_direct()->set_max_queue_delay_microseconds(delay);
    proto.mutable_direct()->set_minimum_slot_utilization(sequences.minimum_slot_utilization);
  } else {
    Batching::StrategyOldest& oldest = *proto.mutable_oldest();
    oldest.set_max_candidate_sequences(static_cast<int32_t>(sequences.max_candidates));
    for (const uint32_t size : config.batching.preferred_sizes) {
      oldest.add_preferred_batch_size(static_cast<int32_t>(size));
    }
    oldest.set_max_queue_delay_microseconds(delay);
    oldest.set_preserve_ordering(config.batching.preserve_ordering);
  }
  for (const auto& control : sequences.controls) set_control(control, *proto.add_control_input());
  for (const auto& state : sequences.states) set_state(state, *proto.add_state());
}

void write_sequences(JsonWriter& json, const ModelConfig& config) {
  const SequenceConfig& sequences = *config.sequences;
  json.key("sequence_batching").begin_object();
  json.field("max_sequence_idle_microseconds", sequences.idle.us());
  const int64_t delay = config.batching.max_delay.us();
  if (sequences.strategy == SequenceConfig::Strategy::kDirect) {
    json.key("direct").begin_object().field("max_queue_delay_microseconds", delay);
    json.key("minimum_slot_utilization").number(double{sequences.minimum_slot_utilization});
  } else {
    json.key("oldest").begin_object();
    json.field("max_candidate_sequences", uint64_t{sequences.max_candidates});
    json.key("preferred_batch_size").begin_array();
    for (const uint32_t size : config.batching.preferred_sizes) json.number(uint64_t{size});
    json.end_array().field("max_queue_delay_microseconds", delay);
    json.field("preserve_ordering", config.batching.preserve_ordering);
  }
  json.end_object().key("control_input").begin_array();
  for (const SequenceControl& control : sequences.controls) write_control(json, control);
  json.end_array().key("state").begin_array();
  for (const SequenceState& state : sequences.states) write_state(json, state);
  json.end_array().end_object();
}

}  // namespace baton::protocol::model_config
