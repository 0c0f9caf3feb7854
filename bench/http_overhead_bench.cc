// p50 of the add model over binary HTTP on one connection, over p50 of an echo server on the same
// loop with the same codec and the same sizes plus the bare Run.

#include "adapters/http/http_server.h"
#include "adapters/onnx/testing/onnx_writer.h"
#include "adapters/transport/steady_clock.h"
#include "support/add_request.h"
#include "support/bare_run.h"
#include "support/child.h"
#include "support/http_exchange.h"
#include "support/overhead.h"
#include "support/server_process.h"

namespace {

namespace http = baton::adapters::http;
namespace http1 = baton::protocol::http1;

// Answers every request with as many bytes as the header X-Answer-Bytes asks for.
class EchoHandler final : public http1::HttpHandler {
 public:
  std::optional<http1::HttpResponse> on_head(const http1::HttpRequest&,
                                             std::optional<uint64_t>) override {
    return std::nullopt;
  }
  void on_request(http1::ExchangeId id, http1::HttpRequest request,
                  http1::HttpResponder& responder) override {
    http1::HttpResponse response;
    response.content_type = "application/octet-stream";
    const size_t wanted = std::strtoul(request.target.data() + 1, nullptr, 10);
    response.body.assign(request.body.substr(0, wanted));
    response.body.resize(wanted);
    responder.respond(id, std::move(response));
  }
  void on_client_gone(http1::ExchangeId) override {}
  http1::HttpResponse render_codec_error(int status, std::string_view) override {
    http1::HttpResponse response;
    response.status = status;
    return response;
  }
};

template <class Announce>
void serve_echo(Announce announce) {
  const baton::adapters::transport::SteadyClock clock;
  baton::adapters::transport::WorkerLoop loop;
  EchoHandler handler;
  http::HttpServer server({}, {{&loop, &handler}}, clock);
  if (!announce(bench::need(server.listen()))) return;
  loop.run();
}

}  // namespace

int main(int argc, char** argv) {
  bench::serve_if_child(argc, argv, [](auto announce) { serve_echo(announce); });
  bench::stay_on_one_cpu();
  const bench::ServingChild echo_server;
  const std::string model = baton::adapters::onnx::testing::add_sub_model();
  const bench::TemporaryFolder repository;
  bench::write_model(repository.path(), "add", model, "max_batch_size: 8\ndynamic_batching {}\n");
  const bench::ServerProcess server(repository.path());

  const auto [body, header_length] = bench::add_request();
  const std::string ask_server = bench::post("/v2/models/add/infer", body, header_length);
  bench::HttpExchange to_server(server.http_port());
  const auto answer = to_server.ask(ask_server);
  if (answer.status != 200) bench::die(std::string(answer.body));
  const std::string ask_echo =
      bench::post("/" + std::to_string(answer.body.size()), body, header_length);
  bench::HttpExchange to_echo(echo_server.port());
  if (to_echo.ask(ask_echo).body.size() != answer.body.size()) bench::die("the echo is broken");
  bench::BareRun bare(model);

  const auto overhead = bench::measure_overhead(
      [&] { to_server.ask(ask_server); }, [&] { to_echo.ask(ask_echo); }, [&] { bare.run(); });
  bench::print(bench::overhead_figure("http_overhead", 1.6, overhead));
}
