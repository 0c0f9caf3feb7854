#include "adapters/http/http_server.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "adapters/http/test_support.h"

namespace baton::adapters::http {
namespace {

std::string post(std::string_view target, std::string_view body, std::string_view headers = {}) {
  return "POST " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n" + std::string(headers) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

std::string get(std::string_view target, std::string_view headers = {}) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n" + std::string(headers) + "\r\n";
}

double milliseconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

TEST(HttpServer, AnswersAndKeepsTheConnection) {
  TestServer server;
  TestClient client(server.port());
  for (std::string_view target : {"/echo", "/later", "/echo"}) {
    client.send(post(target, "hello"));
    const TestResponse response = client.receive();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "hello");
    EXPECT_TRUE(response.has_header("Content-Type: text/plain"));
  }
  EXPECT_EQ(server.server().counters().accepted, 1U);
}

// U048: the same answer as with Content-Length.
TEST(HttpServer, ReadsChunkedBodies) {
  TestServer server;
  TestClient client(server.port());
  client.send(
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  client.send("2\r\nlo\r\n0\r\nT: v\r\n\r\n");
  EXPECT_EQ(client.receive().body, "hello");
}

// U050: the connection is clean after a method that seldom has a body.
TEST(HttpServer, ReusesTheConnectionAfterDeleteWithAChunkedBody) {
  TestServer server;
  TestClient client(server.port());
  client.send(
      "DELETE /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
  EXPECT_EQ(client.receive().body, "abc");
  client.send(post("/echo", "next"));
  EXPECT_EQ(client.receive().body, "next");
}

// U045: the client is told within 50 ms.
TEST(HttpServer, ContinuesAClientThatWaits) {
  TestServer server;
  TestClient client(server.port());
  for (int i = 0; i < 2; ++i) {
    client.send(
        "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    EXPECT_LT(milliseconds_of([&] { EXPECT_TRUE(client.receive_continue(1000)); }), 50);
    client.send("body");
    EXPECT_EQ(client.receive().body, "body");
    EXPECT_EQ(client.continues(), 0);  // told once
  }
}

TEST(HttpServer, SendsNoContinueWhenTheBodyIsThere) {
  TestServer server;
  TestClient client(server.port());
  client.send(post("/echo", "body", "Expect: 100-continue\r\n"));
  EXPECT_EQ(client.receive().body, "body");
  EXPECT_EQ(client.continues(), 0);
}

// U046: a refusal comes instead of 100 Continue, without the body being read.
TEST(HttpServer, RefusesAWaitingClientAtOnce) {
  HttpServerOptions options;
  options.limits.body_bytes = 1000;
  TestServer server(options);
  TestClient refused(server.port());
  refused.send(
      "POST /refuse HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  TestResponse response = refused.receive();
  EXPECT_EQ(response.status, 401);
  EXPECT_TRUE(response.has_header("Connection: close"));
  EXPECT_TRUE(refused.closed_within(1000));
  TestClient large(server.port());
  large.send(
      "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1001\r\n\r\n");
  response = large.receive();
  EXPECT_EQ(response.status, 413);
  EXPECT_NE(response.body.find("1000"), std::string::npos);
  EXPECT_EQ(server.handler().requests.load(), 0);
}

TEST(HttpServer, LetsAClientReadTheRefusalOfABodyItStillSends) {
  HttpServerOptions options;
  options.limits.body_bytes = 1000;
  TestServer server(options);
  TestClient client(server.port());
  // Many clients read only when all is sent, and stop at a reset.
  EXPECT_TRUE(client.send(post("/echo", std::string(8 << 20, 'x'))));
  EXPECT_EQ(client.receive().status, 413);
}

TEST(HttpServer, AnswersMalformedInputAndCloses) {
  TestServer server;
  const std::vector<std::pair<std::string, int>> cases = {
      {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: br, chunked\r\n\r\n", 501},
      {"GET / HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: a\n\n", 400},
      {"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505},
      {"GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", 417},
      {"GET /" + std::string(20'000, 'a') + " HTTP/1.1\r\n\r\n", 414},
      {"GET / HTTP/1.1\r\nHost: a\r\nA: " + std::string(20'000, 'a') + "\r\n\r\n", 431},
      {"\x16\x03\x01\x02", 400},
  };
  for (const auto& [bytes, status] : cases) {
    TestClient client(server.port());
    client.send(bytes);
    const TestResponse response = client.receive();
    EXPECT_EQ(response.status, status) << bytes.substr(0, 100);
    EXPECT_TRUE(response.has_header("Connection: close"));
    EXPECT_TRUE(client.closed_within(1000));
  }
  EXPECT_EQ(server.handler().requests.load(), 0);
  EXPECT_EQ(server.server().counters().bad_requests, cases.size());
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  TestServer server;
  TestClient client(server.port());
  std::string bytes;
  for (int i = 0; i < 20; ++i) bytes += post(i % 3 == 0 ? "/later" : "/echo", std::to_string(i));
  client.send(bytes);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client.receive().body, std::to_string(i));
  // More than is read ahead.
  bytes.clear();
  for (int i = 0; i < 2000; ++i) bytes += post("/later", std::to_string(i));
  std::thread sender([&] { client.send(bytes); });
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(client.receive().body, std::to_string(i));
  sender.join();
}

TEST(HttpServer, MovesLargeBodiesBothWays) {
  TestServer server;
  TestClient client(server.port());
  std::string body(20 << 20, 'a');
  for (size_t i = 0; i < body.size(); i += 1000) body[i] = static_cast<char>('a' + i / 1000 % 26);
  std::thread sender([&] { client.send(post("/echo", body)); });
  EXPECT_TRUE(client.receive().body == body);
  sender.join();
}

TEST(HttpServer, GathersParts) {
  TestServer server;
  TestClient client(server.port());
  client.send(get("/parts"));
  EXPECT_EQ(client.receive().body, "one two three");
}

TEST(HttpServer, SendsNoBodyToHeadAndWith204) {
  TestServer server;
  TestClient client(server.port());
  client.send("HEAD /parts HTTP/1.1\r\nHost: a\r\n\r\n");
  const TestResponse head = client.receive(true);
  EXPECT_TRUE(head.has_header("Content-Length: 13"));
  client.send(get("/nothing"));
  const TestResponse nothing = client.receive();
  EXPECT_EQ(nothing.status, 204);
  EXPECT_EQ(nothing.head.find("Content-Length"), std::string::npos);
  client.send(get("/parts"));
  EXPECT_EQ(client.receive().body, "one two three");
}

TEST(HttpServer, ClosesWhenTheClientAsks) {
  TestServer server;
  TestClient client(server.port());
  client.send(get("/parts", "Connection: close\r\n"));
  EXPECT_TRUE(client.receive().has_header("Connection: close"));
  EXPECT_TRUE(client.closed_within(1000));
  TestClient old(server.port());
  old.send("GET /parts HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.receive().status, 200);
  EXPECT_TRUE(old.closed_within(1000));
}

TEST(HttpServer, NoticesAClientThatGoesWhileTheHandlerWorks) {
  TestServer server;
  {
    TestClient client(server.port());
    client.send(get("/never"));
    ASSERT_TRUE(TestServer::eventually([&] { return server.handler().requests.load() == 1; }));
  }
  EXPECT_TRUE(TestServer::eventually([&] { return server.handler().gone.load() == 1; }));
  EXPECT_TRUE(TestServer::eventually([&] { return server.server().counters().open == 0; }));
}

TEST(HttpServer, NoticesAClientThatGoesBehindAPipelinedRequest) {
  TestServer server;
  {
    TestClient client(server.port());
    client.send(get("/never") + get("/echo"));
    ASSERT_TRUE(TestServer::eventually([&] { return server.handler().requests.load() == 1; }));
  }
  EXPECT_TRUE(TestServer::eventually([&] { return server.handler().gone.load() == 1; }));
  EXPECT_EQ(server.handler().requests.load(), 1);
}

// More than the server reads ahead: the client's end stands behind bytes that nobody reads.
TEST(HttpServer, NoticesAClientThatGoesBehindMoreThanItReadsAhead) {
  TestServer server;
  {
    TestClient client(server.port());
    client.send(get("/never"));
    ASSERT_TRUE(TestServer::eventually([&] { return server.handler().requests.load() == 1; }));
    client.send(post("/echo", std::string(64 * 1024, 'x')));
  }
  EXPECT_TRUE(TestServer::eventually([&] { return server.handler().gone.load() == 1; }));
  EXPECT_TRUE(TestServer::eventually([&] { return server.server().counters().open == 0; }));
  EXPECT_EQ(server.handler().requests.load(), 1);
}

TEST(HttpServer, AnswersAllOfAHalfClosedClientThatSentMoreThanItReadsAhead) {
  HttpServerOptions options;
  options.answer_half_closed = true;
  TestServer server(options);
  TestClient client(server.port());
  std::string bytes;
  for (int i = 0; i < 5; ++i) bytes += post("/later", std::string(8 * 1024, 'x'));
  client.send(bytes);
  client.shut_down_sending();
  EXPECT_EQ(client.receive().body.size(), 8U * 1024);
}

TEST(HttpServer, TreatsAHalfClosedClientAsConfigured) {
  TestServer strict;
  TestClient gone(strict.port());
  gone.send(get("/never"));
  gone.shut_down_sending();
  EXPECT_TRUE(TestServer::eventually([&] { return strict.handler().gone.load() == 1; }));
  HttpServerOptions options;
  options.answer_half_closed = true;
  TestServer lenient(options);
  TestClient client(lenient.port());
  client.send(post("/later", "x"));
  client.shut_down_sending();
  EXPECT_EQ(client.receive().body, "x");
  EXPECT_TRUE(client.closed_within(1000));
}

TEST(HttpServer, ClosesAnUnfinishedRequestThatEnds) {
  TestServer server;
  TestClient client(server.port());
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
  client.shut_down_sending();
  EXPECT_TRUE(client.closed_within(1000));
  EXPECT_EQ(server.handler().requests.load(), 0);
}

TEST(HttpServer, GivesUpOnSlowHeadsAndBodies) {
  HttpServerOptions options;
  options.head_timeout = Duration::ms(60);
  options.body_window = Duration::ms(60);
  options.body_window_bytes = 10;
  TestServer server(options);
  TestClient slow_head(server.port());
  TestClient slow_body(server.port());
  TestClient steady(server.port());
  slow_head.send("GET / HT");
  slow_body.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n");
  steady.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n");
  for (int i = 0; i < 20; ++i) {
    steady.send("12345");
    slow_body.send("1");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(slow_head.receive().status, 408);
  EXPECT_EQ(slow_body.receive().status, 408);
  EXPECT_EQ(server.server().counters().timeouts, 2U);
  EXPECT_EQ(steady.receive().status, 200);
}

TEST(HttpServer, ClosesIdleConnections) {
  HttpServerOptions options;
  options.idle_timeout = Duration::ms(50);
  TestServer server(options);
  TestClient fresh(server.port());
  TestClient used(server.port());
  used.send(post("/echo", "x"));
  EXPECT_EQ(used.receive().status, 200);
  EXPECT_TRUE(fresh.closed_within(1000));
  EXPECT_TRUE(used.closed_within(1000));
}

TEST(HttpServer, CutsASlowReaderOff) {
  HttpServerOptions options;
  options.write_window = Duration::ms(50);
  TestServer server(options);
  TestClient client(server.port(), 4096);
  client.send(get("/big?50000000"));
  EXPECT_TRUE(TestServer::eventually([&] { return server.server().counters().accepted == 1; }));
  EXPECT_TRUE(TestServer::eventually([&] { return server.server().counters().open == 0; }));
  EXPECT_EQ(server.server().counters().write_stalls, 1U);
  EXPECT_EQ(client.receive().status, 0);
}

TEST(HttpServer, RefusesConnectionsOverTheLimit) {
  HttpServerOptions options;
  options.connections_max = 2;
  TestServer server(options);
  TestClient first(server.port());
  TestClient second(server.port());
  first.send(post("/echo", "1"));
  second.send(post("/echo", "2"));
  EXPECT_EQ(first.receive().status, 200);
  EXPECT_EQ(second.receive().status, 200);
  TestClient third(server.port());
  EXPECT_EQ(third.receive().status, 503);
  EXPECT_TRUE(third.closed_within(1000));
  EXPECT_EQ(server.server().counters().refused, 1U);
  first.close();
  third.close();
  ASSERT_TRUE(TestServer::eventually([&] { return server.server().counters().open == 1; }));
  TestClient fourth(server.port());
  fourth.send(post("/echo", "4"));
  EXPECT_EQ(fourth.receive().status, 200);
}

TEST(HttpServer, BoundsTheBodiesThatItReceives) {
  HttpServerOptions options;
  options.receiving_bytes_max = 1 << 20;
  TestServer server(options);
  const std::string half(600'000, 'x');
  const std::string head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 600001\r\n\r\n";
  TestClient first(server.port());
  const auto receives = [&](uint64_t bytes) {
    return TestServer::eventually([&] { return server.server().counters().receiving >= bytes; });
  };
  first.send(head + half);
  ASSERT_TRUE(receives(half.size()));
  {
    TestClient second(server.port());
    second.send(head + half);
    EXPECT_EQ(second.receive().status, 503);
  }
  first.send("y");
  EXPECT_EQ(first.receive().status, 200);
  TestClient third(server.port());
  third.send(head + half);
  ASSERT_TRUE(receives(half.size()));
  third.send("y");
  EXPECT_EQ(third.receive().status, 200);  // nothing of the others is counted any more
}

TEST(HttpServer, SpreadsConnectionsOverItsWorkers) {
  TestServer server({}, 3);
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 9; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    clients.back()->send(post("/echo", "x"));
    EXPECT_EQ(clients.back()->receive().status, 200);
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(server.handler(i).requests.load(), 3);
}

TEST(HttpServer, DrainsWithoutLosingARequest) {
  HttpServerOptions options;
  options.drain_idle_grace = Duration::ms(100);
  TestServer server(options, 2);
  TestClient idle(server.port());
  TestClient busy(server.port());
  TestClient late(server.port());
  for (TestClient* client : {&idle, &busy, &late}) {
    client->send(post("/echo", "x"));
    EXPECT_EQ(client->receive().status, 200);
  }
  busy.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  server.start_drain(Duration::s(5));
  late.send(post("/later", "late"));  // within the grace of an idle connection
  TestResponse response = late.receive();
  EXPECT_EQ(response.body, "late");
  EXPECT_TRUE(response.has_header("Connection: close"));
  late.close();
  busy.send("b");
  response = busy.receive();
  EXPECT_EQ(response.body, "ab");
  EXPECT_TRUE(response.has_header("Connection: close"));
  busy.close();
  EXPECT_TRUE(idle.closed_within(1000));
  EXPECT_TRUE(TestServer::eventually([&] { return server.drained(); }));
  EXPECT_FALSE(TestClient(server.port()).connected());
}

// U073: the drain is bounded.
TEST(HttpServer, CutsOffWhatDoesNotEndByTheDeadline) {
  TestServer server;
  TestClient client(server.port());
  client.send(get("/never"));
  ASSERT_TRUE(TestServer::eventually([&] { return server.handler().requests.load() == 1; }));
  EXPECT_LT(milliseconds_of([&] { server.drain(Duration::ms(50)); }), 1000);
  EXPECT_TRUE(server.drained());
  EXPECT_EQ(server.handler().gone.load(), 1);
  EXPECT_TRUE(client.closed_within(1000));
}

TEST(HttpServer, TakesTheBacklogBeforeItStops) {
  TestServer server;
  std::vector<std::unique_ptr<TestClient>> clients;
  server.loop().post([] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); });
  for (int i = 0; i < 100; ++i) clients.push_back(std::make_unique<TestClient>(server.port()));
  server.server().stop_accepting();
  for (auto& client : clients) {
    client->send(post("/echo", "x"));
    EXPECT_EQ(client->receive().status, 200);
  }
  EXPECT_FALSE(TestClient(server.port()).connected());
}

double cpu_milliseconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) * 1e-3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

// Without file descriptors the clients wait in the backlog and the loop sleeps.
TEST(HttpServer, DoesNotSpinWithoutFileDescriptors) {
  TestServer server;
  TestClient first(server.port());
  first.send(post("/echo", "x"));
  ASSERT_EQ(first.receive().status, 200);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(std::make_unique<TestClient>(server.port()));
  ASSERT_TRUE(TestServer::eventually([&] { return server.server().counters().open == 9; }));
  TestClient waiting(0);  // a descriptor to connect with once the limit stands
  rlimit low = before;
  low.rlim_cur = 3;  // existing descriptors stay
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  ASSERT_TRUE(waiting.connect_existing(server.port()));
  const double cpu = cpu_milliseconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(cpu_milliseconds() - cpu, 100);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  waiting.send(post("/echo", "served"));
  EXPECT_EQ(waiting.receive().body, "served");
}

TEST(HttpServer, SaysWhyItCannotListen) {
  TestServer server;
  transport::SteadyClock clock;
  WorkerLoop loop;
  TestHandler handler(loop);
  HttpServerOptions options;
  options.port = server.port();
  HttpServer second(options, {{&loop, &handler}}, clock);
  EXPECT_NE(second.listen().error().find("in use"), std::string::npos);
  options.address = "localhost";
  HttpServer third(options, {{&loop, &handler}}, clock);
  EXPECT_NE(third.listen().error().find("numeric"), std::string::npos);
}

}  // namespace
}  // namespace baton::adapters::http
