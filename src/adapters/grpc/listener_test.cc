#include "adapters/grpc/listener.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <vector>

namespace baton::adapters::grpc_api {
namespace {

int connect_to(uint16_t port) {
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return client;
}

TEST(Listener, HandsOnWhoeverHasConnectedBeforeItStops) {
  std::promise<void> first;
  std::promise<void> go_on;
  int taken = 0;
  Listener listener([&](int socket) {
    ::close(socket);
    if (taken++ > 0) return;
    first.set_value();
    go_on.get_future().wait();
  });
  const auto port = listener.listen("127.0.0.1", 0);
  ASSERT_TRUE(port.has_value());
  std::vector<int> clients = {connect_to(*port)};
  first.get_future().wait();
  for (int i = 0; i < 200; ++i) clients.push_back(connect_to(*port));
  listener.ask_to_stop();
  go_on.set_value();
  listener.stop();
  EXPECT_EQ(taken, 201);
  for (int client : clients) ::close(client);
}

}  // namespace
}  // namespace baton::adapters::grpc_api
