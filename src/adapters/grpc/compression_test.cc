#include "adapters/grpc/message_encoding.h"
#include "adapters/grpc/test_support.h"

namespace baton::adapters::grpc_api {
namespace {

using grpc::StatusCode;

std::string text_of(size_t size) {
  std::string text;
  while (text.size() < size) text += "line " + std::to_string(text.size() * 7919 % 1000) + "\n";
  text.resize(size);
  return text;
}

// Runs what the server gives its readers, beside the worker.
class CompressedGrpcTest : public GrpcServerTest {
 protected:
  CompressedGrpcTest() {
    readers_ = &jobs_;
    restart({.message_bytes_max = kLimit});
    runner_ = std::thread([this] {
      while (!over_) {
        ran_ += static_cast<int>(jobs_.waiting());
        jobs_.run_all();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  ~CompressedGrpcTest() override {
    over_ = true;
    runner_.join();
  }
  static constexpr size_t kLimit = 8 << 20;
  std::atomic<bool> over_{false};
  std::atomic<int> ran_{0};
  std::thread runner_;
};

TEST_F(CompressedGrpcTest, CallsOfEverySizePassBothWays) {
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    for (int size : {8, 2000, 100'000, 300'000, 4'000'000}) {
      grpc::ClientContext context;
      context.set_compression_algorithm(algorithm);
      ModelInferResponse answer;
      const std::string bytes = text_of(static_cast<size_t>(size));
      const auto status = stub_->ModelInfer(&context, request("m", bytes), &answer);
      ASSERT_TRUE(status.ok()) << size << ": " << status.error_message();
      EXPECT_EQ(answer.raw_output_contents(0), bytes);
    }
  }
  EXPECT_GT(ran_.load(), 0);
}

TEST_F(CompressedGrpcTest, SmallMethodsTakeCompressedMessages) {
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  inference::ModelMetadataRequest ask;
  ask.set_name("m" + std::string(2000, '/'));
  inference::ModelMetadataResponse answer;
  EXPECT_EQ(stub_->ModelMetadata(&context, ask, &answer).error_code(), StatusCode::NOT_FOUND);
  grpc::ClientContext again;
  again.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  ask.set_name(std::string(65 << 10, 'm'));  // its message is small only as it is sent
  EXPECT_EQ(stub_->ModelMetadata(&again, ask, &answer).error_code(),
            StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(CompressedGrpcTest, AMessageThatExpandsBeyondTheLimitIsResourceExhausted) {
  for (size_t size : {kLimit, 64 * kLimit}) {
    grpc::ClientContext context;
    context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    ModelInferResponse answer;
    const auto status = stub_->ModelInfer(&context, request("m", std::string(size, 'a')), &answer);
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    EXPECT_TRUE(status.error_message().contains(std::to_string(kLimit)));
  }
}

TEST_F(CompressedGrpcTest, AStreamOfMixedSizesKeepsItsOrder) {
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  auto stream = stub_->ModelStreamInfer(&context);
  constexpr int kMessages = 300;
  const std::string large = text_of(600'000);
  const auto bytes_of = [&](int i) {
    return i % 20 == 3 ? large : text_of(static_cast<size_t>(8 + i * 10));
  };
  std::thread writer([&] {
    for (int i = 0; i < kMessages; ++i) {
      auto message = request(i % 10 == 7 ? "not_ready" : "m", bytes_of(i));
      message.set_id(std::to_string(i));
      EXPECT_TRUE(stream->Write(message));
    }
    stream->WritesDone();
  });
  inference::ModelStreamInferResponse answer;
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(stream->Read(&answer)) << i;
    EXPECT_EQ(answer.infer_response().id(), std::to_string(i));
    if (i % 10 == 7) continue;
    EXPECT_EQ(answer.infer_response().raw_output_contents(0), bytes_of(i));
  }
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_TRUE(stream->Finish().ok());
  writer.join();
}

TEST(MessageEncoding, AnswersAsTheMessagesWhereThatIsAccepted) {
  const auto chosen = [](std::string_view encoding, std::string_view accepted) {
    protocol::grpc_wire::Metadata metadata;
    metadata.add("grpc-encoding", encoding);
    metadata.add("grpc-accept-encoding", accepted);
    return answer_encoding(metadata);
  };
  EXPECT_EQ(chosen("gzip", "identity, deflate, gzip"), Encoding::kGzip);
  EXPECT_EQ(chosen("deflate", "identity,deflate"), Encoding::kDeflate);
  EXPECT_EQ(chosen("gzip", "identity, deflate"), Encoding::kIdentity);
  EXPECT_EQ(chosen("gzip", "gzipped, "), Encoding::kIdentity);
  EXPECT_EQ(chosen("identity", "gzip"), Encoding::kIdentity);
  EXPECT_EQ(answer_encoding({}), Encoding::kIdentity);
}

TEST(MessageEncoding, APackedMessageKeepsWhatItsPartsKept) {
  const auto kept = std::make_shared<const std::string>(5000, 'v');
  std::vector<protocol::grpc_wire::MessagePart> parts(2);
  parts[0] = {.text = "head", .view = *kept, .keep = kept};
  parts[1].text = "tail";
  auto packed = pack_message(Encoding::kGzip, parts);
  ASSERT_TRUE(packed.has_value());
  parts.clear();
  EXPECT_EQ(kept.use_count(), 2);
  const std::string_view bytes(packed->view.data(), packed->view.size());
  EXPECT_EQ(expand_message(Encoding::kGzip, bytes, 6000).value(), "head" + *kept + "tail");
  EXPECT_EQ(expand_message(Encoding::kGzip, bytes, 5000).error().reason, EndReason::kTooLarge);
  EXPECT_EQ(expand_message(Encoding::kDeflate, bytes, 6000).error().reason, EndReason::kInvalid);
}

}  // namespace
}  // namespace baton::adapters::grpc_api
