#pragma once
// A request to the add model: two INT32 tensors of 16.

#include <array>
#include <string>
#include <vector>

#include "protocol/oip/client.h"

namespace bench {

inline baton::protocol::oip::EncodedRequest add_request() {
  std::array<std::array<int32_t, 16>, 2> data{};
  for (int32_t i = 0; i < 16; ++i) data[0][static_cast<size_t>(i)] = i;
  std::vector<baton::Tensor> inputs;
  for (size_t i = 0; i < 2; ++i) {
    inputs.push_back({"INPUT" + std::to_string(i),
                      baton::DataType::kInt32,
                      {1, 16},
                      std::as_bytes(std::span(data[i]))});
  }
  return baton::protocol::oip::encode_infer_request(inputs);
}

}  // namespace bench
