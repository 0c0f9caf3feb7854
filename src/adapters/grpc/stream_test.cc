#include "adapters/grpc/test_support.h"

namespace baton::adapters::grpc_api {
namespace {

using grpc::StatusCode;

TEST_F(GrpcServerTest, AnswersTheMessagesOfAStreamInTheirOrder) {
  grpc::ClientContext context;
  auto stream = stub_->ModelStreamInfer(&context);
  constexpr int kMessages = 1000;  // more than may wait
  std::thread writer([&] {
    for (int i = 0; i < kMessages; ++i) {
      auto message =
          request(i % 10 == 7 ? "not_ready" : "m", std::string(i % 100 == 5 ? 9000 : 8, 'a'));
      message.set_id(std::to_string(i));
      EXPECT_TRUE(stream->Write(message));
    }
    stream->WritesDone();
  });
  inference::ModelStreamInferResponse answer;
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(stream->Read(&answer)) << i;
    EXPECT_EQ(answer.infer_response().id(), std::to_string(i));
    EXPECT_EQ(answer.error_message(), i % 10 == 7 ? "refused: not_ready" : "");
    if (i % 100 == 5) EXPECT_EQ(answer.infer_response().raw_output_contents(0).size(), 9000U);
  }
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_TRUE(stream->Finish().ok());
  writer.join();
}

TEST_F(GrpcServerTest, HoldsTheClientOfAStreamBack) {
  grpc::ClientContext context;
  auto stream = stub_->ModelStreamInfer(&context);
  std::atomic<int> written{0};
  std::thread writer([&] {
    for (int i = 0; i < 2000 && stream->Write(request("hang", std::string(10'000, 'a'))); ++i) {
      ++written;
    }
  });
  EXPECT_TRUE(eventually([&] { return front_.hung.load() >= 256; }));
  EXPECT_LT(front_.hung.load(), 400);  // those of one read more
  context.TryCancel();
  writer.join();
  EXPECT_LT(written.load(), 2000);
  EXPECT_TRUE(eventually([&] { return front_.cancelled.load() == front_.hung.load(); }));
  EXPECT_FALSE(stream->Finish().ok());
}

TEST_F(GrpcServerTest, AnErrorEndsAStreamThatAsksForThat) {
  grpc::ClientContext context;
  context.AddMetadata("triton_grpc_error", "true");
  auto stream = stub_->ModelStreamInfer(&context);
  EXPECT_TRUE(stream->Write(request("m")));
  EXPECT_TRUE(stream->Write(request("not_found")));
  inference::ModelStreamInferResponse answer;
  EXPECT_TRUE(stream->Read(&answer));
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::NOT_FOUND);
}

TEST_F(GrpcServerTest, AStreamWithoutMessagesEnds) {
  grpc::ClientContext context;
  auto stream = stub_->ModelStreamInfer(&context);
  stream->WritesDone();
  inference::ModelStreamInferResponse answer;
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_TRUE(stream->Finish().ok());
}

}  // namespace
}  // namespace baton::adapters::grpc_api
