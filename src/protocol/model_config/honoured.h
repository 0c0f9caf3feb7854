#pragma once

#include <string>
#include <vector>

namespace google::protobuf {
class Message;
}

namespace baton::protocol::model_config {

// Paths of the fields that are set in `config` (an inference.ModelConfig) and not honoured, such as
// "dynamic_batching.preserve_ordering". Fields set to a value that means their default are not
// listed.
[[nodiscard]] std::vector<std::string> unhonoured_fields(const google::protobuf::Message& config);

}  // namespace baton::protocol::model_config
