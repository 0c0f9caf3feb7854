#pragma once
// Writes small ONNX models byte by byte, so that tests and benchmarks need no Python. Field numbers
// are those of ONNX's public onnx.proto.

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"

namespace baton::adapters::onnx::testing {

// Element types of TensorProto.
inline constexpr uint64_t kOnnxFloat = 1;
inline constexpr uint64_t kOnnxInt32 = 6;
inline constexpr uint64_t kOnnxInt64 = 7;
inline constexpr uint64_t kOnnxString = 8;

// One protobuf message, field by field.
class ProtoWriter {
 public:
  ProtoWriter& number(uint64_t field, uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  ProtoWriter& bytes(uint64_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    out_.append(value);
    return *this;
  }
  [[nodiscard]] const std::string& text() const { return out_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>((value & 0x7f) | 0x80);
    out_ += static_cast<char>(value);
  }
  std::string out_;
};

class OnnxGraph {
 public:
  OnnxGraph() { graph_.bytes(2, "g"); }

  OnnxGraph& node(std::string_view op, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs) {
    ProtoWriter proto;
    for (const std::string& input : inputs) proto.bytes(1, input);
    for (const std::string& output : outputs) proto.bytes(2, output);
    graph_.bytes(1, proto.bytes(4, op).text());
    return *this;
  }
  OnnxGraph& integers(std::string_view name, std::span<const int64_t> values) {
    ProtoWriter tensor;
    tensor.number(1, values.size()).number(2, kOnnxInt64).bytes(8, name);
    tensor.bytes(9, as_chars(std::as_bytes(values)));
    graph_.bytes(5, tensor.text());
    return *this;
  }
  // Dimensions of -1, -2, -3, … become the parameters "N", "M", "L", …
  OnnxGraph& input(std::string_view name, uint64_t type, std::span<const int64_t> dims) {
    graph_.bytes(11, value_info(name, type, dims));
    return *this;
  }
  OnnxGraph& output(std::string_view name, uint64_t type, std::span<const int64_t> dims) {
    graph_.bytes(12, value_info(name, type, dims));
    return *this;
  }
  OnnxGraph& weights(std::string_view name, std::span<const int64_t> dims,
                     std::span<const float> values) {
    ProtoWriter tensor;
    for (int64_t dim : dims) tensor.number(1, static_cast<uint64_t>(dim));
    tensor.number(2, kOnnxFloat).bytes(8, name).bytes(9, as_chars(std::as_bytes(values)));
    graph_.bytes(5, tensor.text());
    return *this;
  }
  // The whole file, of IR version 8 and opset 13.
  [[nodiscard]] std::string model() const {
    ProtoWriter opset;
    opset.bytes(1, "").number(2, 13);
    ProtoWriter proto;
    return proto.number(1, 8).bytes(7, graph_.text()).bytes(8, opset.text()).text();
  }

 private:
  static std::string value_info(std::string_view name, uint64_t type,
                                std::span<const int64_t> dims) {
    ProtoWriter shape;
    for (int64_t dim : dims) {
      ProtoWriter dimension;
      if (dim < 0) {
        dimension.bytes(2, std::string(1, static_cast<char>('N' + 1 + dim)));
      } else {
        dimension.number(1, static_cast<uint64_t>(dim));
      }
      shape.bytes(1, dimension.text());
    }
    ProtoWriter tensor;
    tensor.number(1, type).bytes(2, shape.text());
    ProtoWriter type_proto;
    type_proto.bytes(1, tensor.text());
    ProtoWriter info;
    return info.bytes(1, name).bytes(2, type_proto.text()).text();
  }

  ProtoWriter graph_;
};

// OUTPUT0 = INPUT0 + INPUT1 and OUTPUT1 = INPUT0 - INPUT1 over INT32 [N,16].
[[nodiscard]] inline std::string add_sub_model() {
  const std::vector<int64_t> dims = {-1, 16};
  OnnxGraph graph;
  graph.node("Add", {"INPUT0", "INPUT1"}, {"OUTPUT0"});
  graph.node("Sub", {"INPUT0", "INPUT1"}, {"OUTPUT1"});
  for (const char* name : {"INPUT0", "INPUT1"}) graph.input(name, kOnnxInt32, dims);
  for (const char* name : {"OUTPUT0", "OUTPUT1"}) graph.output(name, kOnnxInt32, dims);
  return graph.model();
}

// A multi-layer perceptron over FP32 "x" [N,sizes.front()] with ReLU between its layers, giving "y"
// [N,sizes.back()]. With `split`, "x" is [N,A,B] for any A * B = sizes.front(): shapes of equal
// cost.
[[nodiscard]] inline std::string mlp_model(std::span<const int64_t> sizes, bool split = false) {
  OnnxGraph graph;
  Random random(1);
  std::string value = "x";
  if (split) {
    graph.integers("flat", std::vector<int64_t>{-1, sizes.front()});
    graph.node("Reshape", {"x", "flat"}, {"rows"});
    value = "rows";
  }
  for (size_t layer = 0; layer + 1 < sizes.size(); ++layer) {
    const std::string number = std::to_string(layer);
    const std::vector<int64_t> dims = {sizes[layer], sizes[layer + 1]};
    const double scale = std::sqrt(2.0 / static_cast<double>(dims[0]));
    std::vector<float> weights(static_cast<size_t>(dims[0] * dims[1]));
    for (float& weight : weights) weight = static_cast<float>(scale * (random.uniform() - 0.5));
    const std::vector<float> bias(static_cast<size_t>(dims[1]), 0.1F);
    graph.weights("w" + number, dims, weights).weights("b" + number, {&dims[1], 1}, bias);
    graph.node("MatMul", {value, "w" + number}, {"m" + number});
    const bool last = layer + 2 == sizes.size();
    value = last ? "y" : "s" + number;
    graph.node("Add", {"m" + number, "b" + number}, {value});
    if (last) break;
    graph.node("Relu", {value}, {"r" + number});
    value = "r" + number;
  }
  const std::vector<int64_t> rows = {-1, sizes.front()};
  const std::vector<int64_t> pieces = {-1, -2, -3};
  graph.input("x", kOnnxFloat, split ? pieces : rows);
  graph.output("y", kOnnxFloat, std::vector<int64_t>{-1, sizes.back()});
  return graph.model();
}

}  // namespace baton::adapters::onnx::testing
