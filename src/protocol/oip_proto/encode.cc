#include "baton_inference.pb.h"
#include "protocol/oip_proto/infer_message.h"

namespace baton::protocol::oip_proto {
namespace {

// Wire type 2: a length, then bytes.
constexpr char tag_of(int field) {
  return static_cast<char>((field << 3) | 2);
}

std::string prefix_of(int field, size_t size) {
  std::string prefix(1, tag_of(field));
  while (size >= 0x80) {
    prefix.push_back(static_cast<char>((size & 0x7f) | 0x80));
    size >>= 7;
  }
  prefix.push_back(static_cast<char>(size));
  return prefix;
}

}  // namespace

std::string stream_prefix(size_t size) {
  return prefix_of(inference::ModelStreamInferResponse::kInferResponseFieldNumber, size);
}

EncodedMessage encode_infer_response(const InferResult& result, const ResponseNames& names) {
  inference::ModelInferResponse message;
  message.set_model_name(std::string(names.model));
  message.set_model_version(std::to_string(names.version));
  message.set_id(std::string(names.id));
  if (names.streamed) {
    (*message.mutable_parameters())["triton_final_response"].set_bool_param(true);
  }
  EncodedMessage encoded;
  encoded.raws.reserve(result.outputs.size());
  for (const Tensor& tensor : result.outputs) {
    auto* output = message.add_outputs();
    output->set_name(tensor.name);
    output->set_datatype(std::string(data_type_name(tensor.type)));
    for (int64_t dim : tensor.shape) output->add_shape(dim);
    if (tensor.place) {  // its raw contents are empty, so that those of others keep their index
      auto& parameters = *output->mutable_parameters();
      parameters["shared_memory_region"].set_string_param(tensor.place->region);
      parameters["shared_memory_byte_size"].set_int64_param(
          static_cast<int64_t>(tensor.place->bytes));
      if (tensor.place->offset != 0) {
        parameters["shared_memory_offset"].set_int64_param(
            static_cast<int64_t>(tensor.place->offset));
      }
    }
    encoded.raws.push_back({prefix_of(inference::ModelInferResponse::kRawOutputContentsFieldNumber,
                                      tensor.data.size()),
                            tensor.data});
  }
  // The raw contents have the highest field number, so they follow.
  message.SerializeToString(&encoded.head);
  return encoded;
}

}  // namespace baton::protocol::oip_proto
