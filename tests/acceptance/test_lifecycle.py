"""Start, readiness and end of a server: SIGTERM under load loses nothing."""

import json
import os
import pathlib
import queue
import random
import re
import resource
import signal
import subprocess
import threading
import time

import numpy
import pytest
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

from harness import load, models, raw_http, server

PAIR = raw_http.infer_body([("INPUT0", "INT32", [1, 16], list(range(16))), ("INPUT1", "INT32", [1, 16], [1] * 16)])
PAIR_TENSORS = [tritonclient.grpc.InferInput(name, [1, 16], "INT32") for name in ("INPUT0", "INPUT1")]
for _tensor in PAIR_TENSORS:
    _tensor.set_data_from_numpy(numpy.ones((1, 16), numpy.int32))
REQUEST = raw_http.post("/v2/models/simple/infer", PAIR)


@pytest.fixture(scope="module", name="simple_models")
def make_simple_models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simple")
    models.write_simple(folder)
    return folder


@pytest.fixture(scope="module", name="slow_models")
def make_slow_models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slow")
    models.write(folder, "slow", models.slow(models.rounds_for(0.3), dims=(1, 4)))
    models.write_simple(folder)
    return folder


def slow_request(rows=1):
    return raw_http.post("/v2/models/slow/infer", raw_http.infer_body([("X", "FP32", [rows, 4], [1.0] * 4 * rows)]))


def test_sigterm_under_load_fails_no_request(make_server, simple_models):
    # server#6230, server#6286, server#6939: not ready at once, served on through the lame-duck time
    running = make_server(simple_models, lame_duck_ms=3000)
    with load.Load(running.ports["http"], REQUEST, rate=600, connections=24) as generator:
        server.wait_for(lambda: len(generator.outcomes) > 600, 20, "load")
        terminated = time.monotonic()
        running.terminate()
        server.wait_for(lambda: running.get("/v2/health/ready").status == 503, 1, "not ready after SIGTERM")
        assert time.monotonic() - terminated < 0.5
        assert running.get("/livez").status == 200
        for _ in range(40):  # new connections are served as well
            assert running.infer("simple", PAIR).status == 200
        server.wait_for(lambda: time.monotonic() > terminated + 2.4, 5, "most of the lame-duck time")
        generator.stop()
    assert running.wait_exit() == 0
    assert generator.failed() == []
    assert generator.count_since(terminated) >= 500 * 2.2
    rate = len(generator.outcomes) / (generator.outcomes[-1].intended - generator.outcomes[0].intended)
    assert rate >= 500 and generator.opened >= 20
    late = load.percentile([outcome.latency_s for outcome in generator.outcomes if outcome.intended > terminated], 99)
    assert late < 0.25


def test_a_ready_probe_turns_503_with_a_reason_while_models_answer(make_server, simple_models):
    running = make_server(simple_models, lame_duck_ms=20_000)
    running.terminate()
    server.wait_for(lambda: running.get("/readyz").status == 503, 1, "not ready")
    for path in ("/readyz", "/v2/health/ready"):
        answer = running.get(path)
        assert answer.status == 503 and "shutting down" in answer.json()["error"], answer.body
    assert running.get("/readyz", protocol="metrics").status == 503
    assert running.get("/livez").status == 200
    assert running.infer("simple", PAIR).status == 200
    running.terminate()  # the second signal ends the lame-duck time
    running.expected_status = 143
    assert running.wait_exit(5) == 143


@pytest.mark.parametrize("second, status", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_second_signal_ends_it_at_once(make_server, slow_models, second, status):
    running = make_server(slow_models, lame_duck_ms=20_000)
    running.expected_status = status
    with raw_http.Connection(running.ports["http"]) as connection:
        connection.send(slow_request())  # what is in flight does not hold it up
        running.terminate()
        server.wait_for(lambda: running.get("/readyz").status == 503, 1, "not ready")
        signalled = time.monotonic()
        running.process.send_signal(second)
        assert running.wait_exit(5) == status
    assert time.monotonic() - signalled < 1
    assert "second signal" in running.log()


def test_the_end_is_bounded_by_the_configured_time(make_server, tmp_path):
    # one step of a model runs for seconds and cannot be cut off
    models.write(tmp_path / "models", "step", models.one_step())
    (tmp_path / "baton.yaml").write_text("version: 1\nshutdown: { lame_duck: 0s, drain: 200ms, stop: 300ms }\n")
    running = make_server(tmp_path / "models", lame_duck_ms=0, arguments=["-c", tmp_path / "baton.yaml"])
    running.expected_status = 3
    with raw_http.Connection(running.ports["http"]) as connection:
        connection.send(raw_http.post("/v2/models/step/infer", raw_http.infer_body([("N", "INT64", [1], [7000])])))
        server.wait_for(lambda: running.metric("baton_running_requests", model="step") == 1, 10, "a run")
        terminated = time.monotonic()
        running.terminate()
        assert running.wait_exit(20) == 3
    assert 0.4 < time.monotonic() - terminated < 1.5


def begin_serve(folder, *arguments):
    """A `baton serve` that may never come to write its ports; its log is `folder/server.log`."""
    (folder / "models").mkdir()
    command = [server.binary(), "serve", folder / "models", "--host", server.HOST, "--http-port", 0, "--grpc-port", 0,
               "--metrics-port", 0, *arguments]
    with open(folder / "server.log", "wb") as log:
        return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def test_sigterm_ends_a_start_that_hangs_in_the_configured_time(tmp_path):
    os.mkfifo(tmp_path / "access")  # its opening waits for a reader that never comes
    (tmp_path / "baton.yaml").write_text("version: 1\nshutdown: { lame_duck: 0s, drain: 200ms, stop: 300ms }\n")
    process = begin_serve(tmp_path, "--access-log", tmp_path / "access", "-c", tmp_path / "baton.yaml")
    try:
        status = pathlib.Path(f"/proc/{process.pid}/status")

        def hears():
            masks = [int(line.split()[1], 16) for line in status.read_text().splitlines() if line.startswith("SigBlk")]
            return masks[0] >> (signal.SIGTERM - 1) & 1
        server.wait_for(hears, 20, "that it waits for signals")
        process.terminate()
        assert process.wait(5) == 3
    finally:
        process.kill()
        process.wait()


def test_a_start_that_fails_closes_the_connections_it_has(tmp_path):
    (tmp_path / "ports" / "full").mkdir(parents=True)  # cannot be replaced by a file
    os.mkfifo(tmp_path / "ports.part")
    process = begin_serve(tmp_path, "--ports-file", tmp_path / "ports")
    try:
        def port():
            return re.search(r"http    on [0-9.]+:(\d+)", (tmp_path / "server.log").read_text())
        with raw_http.Connection(int(server.wait_for(port, 20, "a port")[1])) as connection:
            connection.send(raw_http.post("/v2/models/m/infer", b"x" * 100)[:-50])  # half a body
            with open(tmp_path / "ports.part", "rb") as part:  # it goes on, and finds that it cannot
                assert part.read() != b""
            assert process.wait(10) == 1
        text = (tmp_path / "server.log").read_text()
        assert "the ports file cannot be written" in text and "draining" in text, text
    finally:
        process.kill()
        process.wait()


def test_sigterm_cuts_a_warm_up_run_short(make_server, tmp_path):
    # one run takes many seconds, and warm-up would take several
    models.write(tmp_path / "models", "slow", models.spin(least=10 * models.rounds_a_second(8)))
    running = make_server(tmp_path / "models", ready=False, lame_duck_ms=1000)
    server.wait_for(lambda: b"warming" in running.get("/v2/models/slow/ready").body, 20, "warming up")
    terminated = time.monotonic()
    running.terminate()
    stopped = "model slow version 1 failed: its loading was stopped"
    server.wait_for(lambda: stopped in running.log(), 0.8, "an end of loading within the lame-duck time")
    assert running.wait_exit(20) == 0
    assert time.monotonic() - terminated < 2.5


def test_sigterm_fails_no_grpc_call(make_server, simple_models):
    # server#6230 over gRPC: calls of many clients during the lame-duck time, new channels included
    running = make_server(simple_models, lame_duck_ms=1500)
    if "grpc" not in running.ports:
        pytest.skip('gRPC is not served yet: the ports file has no "grpc" key')
    stop, counts, problems = threading.Event(), [], []

    def call():
        client, count = make_client(), 0
        while not stop.is_set():
            try:
                client.infer("simple", PAIR_TENSORS, client_timeout=5)
                count += 1
            except InferenceServerException as problem:
                problems.append(problem)
        counts.append(count)

    def make_client():
        return tritonclient.grpc.InferenceServerClient(running.address("grpc"))
    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    probe = make_client()
    server.wait_for(lambda: running.metric("baton_requests_total", model="simple") > 200, 10, "load")
    before = running.metric("baton_requests_total", model="simple")
    running.terminate()
    terminated = time.monotonic()
    server.wait_for(lambda: not probe.is_server_ready(), 1, "not ready over gRPC")
    assert probe.is_server_live() and probe.is_model_ready("simple")
    assert make_client().infer("simple", PAIR_TENSORS).as_numpy("OUTPUT0").tolist() == [[2] * 16]
    server.wait_for(lambda: time.monotonic() > terminated + 1.0, 3, "most of the lame-duck time")
    stop.set()
    for thread in threads:
        thread.join(10)
    assert problems == [] and min(counts) > 0
    assert running.metric("baton_requests_total", model="simple") > before + 100
    assert running.wait_exit() == 0


def test_grpc_calls_in_flight_are_finished(make_server, slow_models):
    running = make_server(slow_models, lame_duck_ms=0)
    if "grpc" not in running.ports:
        pytest.skip('gRPC is not served yet: the ports file has no "grpc" key')
    client = tritonclient.grpc.InferenceServerClient(running.address("grpc"))
    item = tritonclient.grpc.InferInput("X", [1, 4], "FP32")
    item.set_data_from_numpy(numpy.ones((1, 4), numpy.float32))
    answers = queue.Queue()
    for _ in range(4):
        client.async_infer("slow", [item], lambda result, error: answers.put((result, error)))
    server.wait_for(lambda: running.metric("inference_requests_in_flight", model="slow") == 4, 10, "four in flight")
    running.terminate()
    for _ in range(4):
        result, error = answers.get(timeout=20)
        assert error is None and result.as_numpy("Y").tolist() == [[1.0] * 4]
    assert running.wait_exit() == 0
    client.close()


def test_work_in_flight_is_finished_after_the_lame_duck_time(make_server, slow_models):
    running = make_server(slow_models, lame_duck_ms=100)
    answers = []

    def ask():
        with raw_http.Connection(running.ports["http"]) as connection:
            answers.append(connection.ask(slow_request()))
    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    server.wait_for(lambda: running.metric("inference_requests_in_flight", model="slow") == 6, 10, "six in flight")
    running.terminate()
    for thread in threads:
        thread.join(30)
    assert [answer.status for answer in answers] == [200] * 6
    assert running.wait_exit() == 0


def test_idle_connections_do_not_hold_the_end_up(make_server, simple_models):
    running = make_server(simple_models, lame_duck_ms=0)
    held = [raw_http.Connection(running.ports["http"]) for _ in range(20)]
    for connection in held[:10]:
        assert connection.ask(raw_http.get("/livez")).status == 200
    running.terminate()
    assert running.wait_exit(5) == 0
    for connection in held:
        connection.close()


def test_a_body_that_never_ends_does_not_hold_the_end_up_for_ever(make_server, simple_models):
    running = make_server(simple_models, lame_duck_ms=0)
    with raw_http.Connection(running.ports["http"]) as connection:
        connection.send(b"POST /v2/models/simple/infer HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\n{")
        running.terminate()
        assert running.wait_exit(35) == 0


def test_sigterm_while_models_load_ends_in_time(make_server, tmp_path):
    # core PR 324
    folder = tmp_path / "models"
    made = models.slow(models.rounds_for(0.4))
    for index in range(8):
        models.write(folder, f"slow{index}", made)
    running = make_server(folder, ready=False)
    server.wait_for(lambda: running.get("/livez").status == 200, 10, "liveness while loading")
    answer = running.get("/v2/health/ready")
    assert answer.status == 503 and "loading" in answer.json()["error"], answer.body
    terminated = time.monotonic()
    running.terminate()
    assert running.wait_exit(30) == 0
    assert time.monotonic() - terminated < 3


def test_the_same_port_serves_again_at_once(simple_models, tmp_path):
    with server.Server(simple_models, folder=tmp_path / "first") as first:
        first.wait_ready()
        port = first.ports["http"]
        with raw_http.Connection(port) as connection:
            assert connection.ask(REQUEST).status == 200
            assert first.stop() == 0
    with server.Server(simple_models, folder=tmp_path / "second", ports={"http": port}) as second:
        second.wait_ready()
        assert second.ports["http"] == port
        assert second.infer("simple", PAIR).status == 200


def test_a_taken_port_is_said_in_one_sentence(make_server, simple_models, tmp_path):
    running = make_server(simple_models)
    command = [server.binary(), "serve", simple_models, "--http-port", str(running.ports["http"]),
               "--grpc-port", "0", "--metrics-port", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode != 0
    assert "Address already in use" in ended.stderr and str(running.ports["http"]) in ended.stderr, ended.stderr
    assert running.infer("simple", PAIR).status == 200


def test_it_listens_on_loopback_alone(make_server, simple_models):
    running = make_server(simple_models)
    loopback = {"0100007F", "0000000000000000FFFF00000100007F"}  # 127.0.0.1, on its own and within IPv6
    found = {}
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{running.process.pid}/net/{table}").read_text().splitlines()[1:]:
            address, port = line.split()[1].split(":")
            if line.split()[3] == "0A":
                found.setdefault(int(port, 16), set()).add(address)
    for port in running.ports.values():
        assert found[port] <= loopback, found[port]


def test_restarts_leave_nothing_behind(make_server, simple_models):
    for _ in range(3):
        running = make_server(simple_models)
        assert json.loads(running.infer("simple", PAIR).body)["model_name"] == "simple"
        assert running.stop() == 0


def test_the_first_request_is_as_fast_as_the_others(make_server, simple_models):
    # server#7187, server#7776: nothing is initialised on the path of a request
    running = make_server(simple_models)
    with raw_http.Connection(running.ports["http"]) as connection:
        times = []
        for _ in range(50):
            started = time.monotonic()
            assert connection.ask(REQUEST).status == 200
            times.append(time.monotonic() - started)
    assert times[0] < max(0.03, 10 * load.percentile(times, 50)), times[0]


def test_the_first_grpc_call_after_idling_is_as_fast_as_the_others(make_server, simple_models):
    # server#7187: fresh, and again after nothing was asked for a while; other programs can only add: the best of three
    running = make_server(simple_models)
    firsts, others = [], []
    with tritonclient.grpc.InferenceServerClient(running.address("grpc")) as client:
        assert client.is_server_live()  # the client's own connection
        for _ in range(3):
            for number in range(40):
                started = time.monotonic()
                client.infer("simple", PAIR_TENSORS)
                (others if number else firsts).append(time.monotonic() - started)
            idle_until = time.monotonic() + 2
            server.wait_for(lambda idle_until=idle_until: time.monotonic() > idle_until, 5, "two idle seconds")
    assert min(firsts) < max(0.03, 5 * load.percentile(others, 50)), (firsts, load.percentile(others, 50))


@pytest.mark.parametrize("more, pool", [("", 0), ('parameters { key: "intra_op_thread_count" '
                                                  'value { string_value: "2" } }', 1)])
def test_an_instance_has_one_thread_unless_more_are_asked_for(make_server, tmp_path, more, pool):
    # server#7213, server#2265, onnxruntime_backend#245: instances do not take all cores each
    models.write(tmp_path / "models", "m", models.slow(2), models.batching_config(
        4, extra=f"instance_group [ {{ count: 4 kind: KIND_CPU }} ] {more}"))
    running = make_server(tmp_path / "models")
    body = raw_http.infer_body([("X", "FP32", [1, 4], [1.0] * 4)])
    assert {running.infer("m", body).status for _ in range(8)} == {200}
    names = [path.read_text().strip() for path in pathlib.Path(f"/proc/{running.process.pid}/task").glob("*/comm")]
    assert sorted(name for name in names if name.startswith("m#")) == ["m#0", "m#1", "m#2", "m#3"]
    assert names.count("baton-ort") == pool, names


def test_memory_stays_flat_while_shapes_change(make_server, tmp_path):
    # model_server#2102: a new shape with every request
    models.write(tmp_path / "models", "dynamic", models.affine([-1, -1, -1]))
    running = make_server(tmp_path / "models")
    generator, sizes = random.Random(2), []
    with raw_http.Connection(running.ports["http"]) as connection:
        for count in range(3000):
            shape = [generator.randint(1, 3), generator.randint(1, 60), generator.randint(1, 60)]
            size = shape[0] * shape[1] * shape[2]
            header = json.dumps({"inputs": [{"name": "X", "datatype": "FP32", "shape": shape,
                                             "parameters": {"binary_data_size": 4 * size}}]}).encode()
            answer = connection.ask(raw_http.post("/v2/models/dynamic/infer", header + bytes(4 * size), [
                ("Inference-Header-Content-Length", len(header))]))
            assert answer.status == 200
            if count % 500 == 499:
                sizes.append(running.rss_mib())
    assert sizes[-1] - sizes[1] < 16, sizes


def test_many_clients_at_once_then_none(make_server, simple_models):
    # server#4662, server#3451: recovers after a burst; descriptors come back
    running = make_server(simple_models)
    before = running.descriptors()
    held = [raw_http.Connection(running.ports["http"]) for _ in range(800)]
    for connection in held:
        connection.send(REQUEST)
    assert {connection.read().status for connection in held} == {200}
    for connection in held:
        connection.close()
    server.wait_for(lambda: running.descriptors() <= before + 5, 10, "closed connections given back")
    assert running.infer("simple", PAIR).status == 200


def test_more_connections_than_allowed_are_told_so(make_server, simple_models):
    # server#3353: a limit, said aloud, instead of a reset
    running = make_server(simple_models)
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 5000:
        pytest.skip("this machine allows fewer than 5,000 open files")
    held, refused = [], None
    try:
        for _ in range(4200):
            held.append(raw_http.Connection(running.ports["http"]))
        refused = held[-1].read()
        assert refused is not None and refused.status == 503 and "connections" in refused.json()["error"]
        assert held[0].ask(raw_http.get("/livez")).status == 200
    finally:
        for connection in held:
            connection.close()
    server.wait_for(lambda: running.get("/livez").status == 200, 10, "room again")


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_signals_without_a_meaning_are_ignored_with_a_line(make_server, general_models, number):
    running = make_server(general_models)
    running.process.send_signal(number)
    server.wait_for(lambda: f"{number.name}: ignored" in running.log(), 5, "the line in the log")
    assert running.get("/readyz").status == 200


def test_nothing_is_left_in_the_home_or_among_temporary_files(simple_models, make_server, tmp_path, monkeypatch):
    """ONNX Runtime sends events to its maker unless it is told not to before it starts."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    running = make_server(simple_models)
    with raw_http.Connection(running.ports["http"]) as connection:
        assert connection.ask(REQUEST).status == 200
    names = {path.read_text().strip() for path in pathlib.Path(f"/proc/{running.process.pid}/task").glob("*/comm")}
    files = [os.readlink(path) for path in pathlib.Path(f"/proc/{running.process.pid}/fd").iterdir()]
    running.stop()
    assert not list(home.rglob("*"))
    assert not [name for name in files if "onnxruntime.db" in name]
    assert not pathlib.Path(f"/tmp/mat-debug-{running.process.pid}.log").exists()
    # Every thread is baton's own and says whose.
    assert {name for name in names if not name.startswith(("baton", "simple"))} == set(), names
