#include "app/infer_inputs.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <utility>

#include "protocol/command_line/arguments.h"
#include "protocol/npy/npy.h"
#include "protocol/oip/client_inputs.h"
#include "service/batching/synthetic_request.h"

namespace baton::app {
namespace {

namespace npy = protocol::npy;

constexpr uint64_t kMostBytes = 1ULL << 30;  // of a file, and of all that is made up

Result<std::string, std::string> read_all(std::istream& in, const std::string& name) {
  std::string text;
  std::array<char, 65536> piece{};
  while (in.read(piece.data(), piece.size()), in.gcount() > 0) {
    text.append(piece.data(), static_cast<size_t>(in.gcount()));
    if (text.size() > kMostBytes) return fail(name + " is above 1 GiB");
  }
  if (in.bad()) return fail(name + " cannot be read");
  return text;
}

Result<std::string, std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail("\"" + path + "\" cannot be opened");
  return read_all(file, "\"" + path + "\"");
}

bool has_input(const InferRequest& request, const std::string& name) {
  return std::ranges::find(request.inputs, name, &Tensor::name) != request.inputs.end();
}

// Adds "name=file.npy".
Result<void, std::string> add_file(const std::string& argument,
                                   const std::vector<TensorSpec>& specs, InferRequest& request) {
  const size_t equals = argument.find('=');
  if (equals == std::string::npos || equals == 0) {
    return fail("\"" + argument + "\" is no input such as x=file.npy");
  }
  const std::string name = argument.substr(0, equals);
  const std::string path = argument.substr(equals + 1);
  const auto spec = std::ranges::find(specs, name, &TensorSpec::name);
  if (spec == specs.end()) return fail("the model has no input \"" + name + "\"");
  if (has_input(request, name)) return fail("input \"" + name + "\" is given twice");
  BATON_ASSIGN(const std::string file, read_file(path));
  auto read = npy::read_npy(file);
  if (!read.has_value()) return fail("\"" + path + "\": " + read.error());
  auto array = std::make_shared<const npy::Array>(std::move(*read));
  if (array->type != spec->type) {
    return fail("\"" + path + "\" holds " + std::string(data_type_name(array->type)) +
                ", the input \"" + name + "\" takes " + std::string(data_type_name(spec->type)));
  }
  request.inputs.push_back({name, array->type, array->shape, array->data});
  request.storage.push_back(std::move(array));
  return {};
}

// Makes up what `request` lacks.
Result<void, std::string> add_made_up(const InferOptions& options, std::vector<TensorSpec> specs,
                                      InferRequest& request) {
  BATON_TRY(protocol::command_line::close_shapes(specs, 1, options.shapes));
  WarmupSample sample;
  uint64_t bytes = 0;
  for (const TensorSpec& spec : specs) {
    if (has_input(request, spec.name)) continue;
    const size_t size = std::max<size_t>(element_size(spec.type), 1);
    bytes += element_count(spec.dims).value_or(kMostBytes) * size;
    if (bytes > kMostBytes) return fail("input \"" + spec.name + "\" would be above 1 GiB");
    sample.inputs[spec.name] = {
        .type = spec.type,
        .dims = spec.dims,
        .source = options.zeros ? WarmupInput::Source::kZero : WarmupInput::Source::kRandom};
  }
  ModelConfig shapes;  // max_batch_size 0: the dims are whole shapes
  shapes.inputs = std::move(specs);
  Random random(options.seed, 2);
  BATON_ASSIGN(const auto made, service::sample_request(shapes, sample, {}, random));
  std::ranges::copy(made->inputs, std::back_inserter(request.inputs));
  request.storage.push_back(made);
  return {};
}

}  // namespace

Result<std::string, std::string> json_text(const std::string& argument) {
  if (argument == "-") return read_all(std::cin, "the standard input");
  const size_t start = argument.find_first_not_of(" \t\r\n");
  if (start != std::string::npos && argument[start] == '{') return argument;
  return read_file(argument);
}

Result<InferRequest, std::string> gather_inputs(const InferOptions& options,
                                                const std::string& json,
                                                protocol::oip::ModelMetadata metadata) {
  InferRequest request;
  if (!json.empty()) {
    protocol::json::JsonParser parser;
    const auto read = protocol::oip::read_named_arrays(json, metadata.inputs, request, parser);
    if (!read.has_value()) return fail("--json: " + read.error());
  }
  for (const std::string& argument : options.inputs) {
    BATON_TRY(add_file(argument, metadata.inputs, request));
  }
  if (options.zeros || options.random) {
    BATON_TRY(add_made_up(options, std::move(metadata.inputs), request));
  }
  return request;
}

}  // namespace baton::app
