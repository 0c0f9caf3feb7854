// Shared memory: whatever a registration or a tensor's parameters say, over REST and gRPC, nothing
// outside the region is read or written, and what is refused says why.

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/shared_memory/system_shared_memory.h"
#include "baton_inference.pb.h"
#include "protocol/oip/infer_codec.h"
#include "protocol/oip/shared_memory.h"
#include "protocol/oip_proto/infer_message.h"

namespace {

using namespace baton;
namespace fs = std::filesystem;

constexpr uint64_t kObjectBytes = 256;

void require(bool condition) {
  if (!condition) std::abort();
}

// A folder with one object, for the life of the process.
class Memory {
 public:
  Memory() {
    std::string made = fs::temp_directory_path() / "baton-fuzz-XXXXXX";
    require(mkdtemp(made.data()) != nullptr);
    folder_ = made;
    std::ofstream(folder_ / "object", std::ios::binary) << std::string(kObjectBytes, 'x');
  }
  ~Memory() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // A registration as a client describes it, then one that holds the place's.
  void add(const protocol::oip::RegionText& region) {
    adapters::SystemSharedMemory memory({.bytes = 1 << 20, .regions = 4}, folder_.string());
    const auto added = memory.add({region.name, region.key, region.offset, region.bytes});
    require(added.has_value() || !added.error().message.empty());
    if (added.has_value()) {
      require(region.bytes <= kObjectBytes && region.offset <= kObjectBytes - region.bytes);
    }
  }
  void touch(const MemoryPlace& asked) {
    adapters::SystemSharedMemory memory({.bytes = 1 << 20, .regions = 4}, folder_.string());
    require(memory.add({asked.region, "object", 16, 200}).has_value());
    const auto checked = memory.check(asked);
    const bool within = asked.bytes <= 200 && asked.offset <= 200 - asked.bytes;
    require(checked.has_value() == within);
    if (!within) return require(!checked.error().message.empty());
    std::vector<std::byte> bytes(asked.bytes);
    require(memory.read(asked, bytes).has_value() && memory.write(asked, bytes).has_value());
    require(fs::file_size(folder_ / "object") == kObjectBytes);
  }

 private:
  fs::path folder_;
};

Memory& memory() {
  static Memory made;
  return made;
}

void touch_all(const InferRequest& request) {
  for (const Tensor& input : request.inputs) {
    if (!input.place) continue;
    require(input.data.data() == nullptr && !input.place->region.empty());
    memory().touch(*input.place);
  }
  for (const RequestedOutput& output : request.outputs) {
    if (output.place) memory().touch(*output.place);
  }
}

void read_registration(std::string_view body) {
  std::string text(body);
  text.append(64, '\0');
  static protocol::json::JsonParser parser;
  auto region = protocol::oip::parse_region(std::string_view(text).substr(0, body.size()), parser);
  if (!region.has_value()) return require(!region.error().message.empty());
  region->name = "r";
  memory().add(*region);
  require(!protocol::oip::regions_json({&*region, 1}).empty());
}

void read_rest(std::string_view body) {
  std::string text(body);
  text.append(64, '\0');
  static protocol::json::JsonParser parser;
  const auto decoded = protocol::oip::decode_infer_request(
      {std::string_view(text).substr(0, body.size()), nullptr, std::nullopt}, parser);
  if (!decoded.has_value()) return require(!decoded.error().message.empty());
  touch_all(decoded->request);
}

void read_grpc(std::string_view body) {
  auto message = std::make_shared<inference::ModelInferRequest>();
  if (!message->ParseFromArray(body.data(), static_cast<int>(body.size()))) return;
  const auto decoded = protocol::oip_proto::decode_infer_request(message);
  if (!decoded.has_value()) return require(!decoded.error().message.empty());
  touch_all(decoded->request);
}

}  // namespace

// The first byte says what the others are.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      read_registration(body);
      break;
    case 1:
      read_rest(body);
      break;
    default:
      read_grpc(body);
      break;
  }
  return 0;
}
