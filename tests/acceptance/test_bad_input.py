"""What no well-behaved client sends: each gets a clear 4xx, nobody else notices, and nothing is left behind."""

import contextlib
import json
import random
import struct
import threading
import time

import numpy
import pytest

from harness import load, models, raw_http, server
from harness.malformed import BODIES, CHUNKS, GOOD, HEADS, INFER


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad-input")
    models.write_simple(folder)
    models.write(folder, "bytes", models.identity("BYTES", [-1]))
    models.write(folder, "floats", models.identity("FP32", [-1, -1]))
    models.write(folder, "deep", models.identity("FP32", [-1] * 6))
    with server.Server(folder, folder=tmp_path_factory.mktemp("bad-input-server")) as running:
        running.wait_ready()
        yield running
        assert running.infer("simple", GOOD).status == 200


@pytest.fixture(name="connection")
def open_connection(served):
    with raw_http.Connection(served.ports["http"]) as made:
        yield made


class Bystander:
    """Another client, asking all the time: how long its answers take while a test misbehaves."""

    def __init__(self, running):
        self.server, self.times, self.bad = running, [], []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        with raw_http.Connection(self.server.ports["http"]) as connection:
            while not self._stop.wait(0.005):
                started = time.monotonic()
                answer = connection.ask(raw_http.post(INFER, GOOD))
                self.times.append(time.monotonic() - started)
                if answer is None or answer.status != 200:
                    self.bad.append(answer)

    def __enter__(self):
        self._thread.start()
        server.wait_for(lambda: self.times, 5, "the bystander's first answer")
        return self

    def __exit__(self, kind, *_):
        self._stop.set()
        self._thread.join(20)
        if kind is None:
            assert not self.bad, self.bad
            assert load.percentile(self.times, 95) < 0.1 and max(self.times) < 1.0, sorted(self.times)[-5:]


@pytest.fixture(autouse=True)
def nothing_is_left_behind(served):
    """After each test: alive, no growth of memory worth naming, descriptors given back, no work in flight."""
    before = served.rss_mib()
    yield
    assert served.process.poll() is None, served.log()[-4000:]
    server.wait_for(lambda: served.descriptors() < 60, 15, "descriptors given back")
    server.wait_for(lambda: served.metric("inference_requests_in_flight") == 0, 10, "no work in flight")
    assert served.rss_mib() < before + 200


# -- requests that are not valid JSON, or not this protocol's

@pytest.mark.parametrize("name", BODIES)
def test_a_bad_body_is_a_clear_400(connection, name):
    answer = connection.ask(raw_http.post(INFER, BODIES[name]))
    assert answer is not None and answer.status == 400, answer
    assert answer.json()["error"] and answer.json()["reason"] == "invalid"
    assert len(answer.body) < 2000
    if not answer.closes:  # the framing was sound, so the connection goes on
        assert connection.ask(raw_http.post(INFER, GOOD)).status == 200


def test_every_cut_of_a_good_body_is_refused(connection):
    for cut in range(0, len(GOOD)):
        answer = connection.ask(raw_http.post(INFER, GOOD[:cut]))
        assert answer.status == 400, (cut, answer)


def test_random_damage_never_breaks_anything(connection, served):
    generator = random.Random(8)
    for _ in range(600):
        body = bytearray(GOOD)
        for _ in range(generator.randint(1, 4)):
            at = generator.randrange(len(body))
            if generator.random() < 0.5:
                body[at] = generator.randrange(256)
            else:
                del body[at:at + generator.randint(1, 8)]
        answer = connection.ask(raw_http.post(INFER, bytes(body)))
        assert answer.status in (200, 400), (bytes(body), answer)
    assert served.metric("baton_requests_total", end_reason="engine_failed") == 0


# -- the binary extension's lengths


def binary(header, data, length=None):
    text = json.dumps(header).encode()
    return raw_http.post(INFER.replace("simple", "floats"), text + data,
                         [("Inference-Header-Content-Length", len(text) if length is None else length)])


FLOATS = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 4], "parameters": {"binary_data_size": 16}}]}


@pytest.mark.parametrize("length", ["-1", "x", "", "1e2", "0x10", "99999", "2147483648", "18446744073709551616",
                                    "4294967297", "1", "10", " 5 5", "5, 5", "+90", "9" * 400])
def test_a_header_length_that_lies_is_refused(connection, length):
    # server#8925
    answer = connection.ask(binary(FLOATS, bytes(16), length))
    assert answer.status == 400, answer


def test_a_header_length_given_twice_is_refused(connection):
    text = json.dumps(FLOATS).encode()
    answer = connection.ask(raw_http.post("/v2/models/floats/infer", text + bytes(16), [
        ("Inference-Header-Content-Length", len(text)), ("Inference-Header-Content-Length", len(text) - 5)]))
    assert answer.status == 400, answer


def test_a_header_length_of_zero_is_answered_as_not_offered(connection):
    answer = connection.ask(raw_http.post("/v2/models/floats/infer", bytes(16),
                                          [("Inference-Header-Content-Length", "0")]))
    assert answer.status in (400, 501) and answer.json()["error"]


@pytest.mark.parametrize("size, data", [(16, 15), (16, 17), (12, 12), (20, 20), (0, 0), (16, 0), (2**40, 16),
                                        (2**63, 16), (2**64 - 1, 16)])
def test_binary_sizes_must_be_the_tensors(connection, size, data):
    header = {"inputs": [FLOATS["inputs"][0] | {"parameters": {"binary_data_size": size}}]}
    answer = connection.ask(binary(header, bytes(data)))
    assert answer.status == 400, answer


def test_two_inputs_may_not_share_bytes(connection):
    item = {"datatype": "INT32", "shape": [1, 16], "parameters": {"binary_data_size": 64}}
    header = json.dumps({"inputs": [{"name": "INPUT0"} | item, {"name": "INPUT1"} | item]}).encode()
    answer = connection.ask(raw_http.post(INFER, header + bytes(64), [
        ("Inference-Header-Content-Length", len(header))]))
    assert answer.status == 400, answer


@pytest.mark.parametrize("name, data", {
    "shorter than a length": b"\x01\0\0", "length beyond the end": struct.pack("<I", 5) + b"abcd",
    "length of 4 GiB": struct.pack("<I", 2**32 - 1) + b"abcd", "an element too few": struct.pack("<I", 4) + b"abcd",
    "an element too many": struct.pack("<I", 0) * 3, "bytes behind the last": struct.pack("<I", 0) * 2 + b"x",
}.items())
def test_bytes_tensors_hold_exactly_their_elements(connection, name, data):
    # server#3524
    header = json.dumps({"inputs": [{"name": "IN", "datatype": "BYTES", "shape": [2],
                                     "parameters": {"binary_data_size": len(data)}}]}).encode()
    answer = connection.ask(raw_http.post("/v2/models/bytes/infer", header + data, [
        ("Inference-Header-Content-Length", len(header))]))
    assert answer.status == 400 and "IN" in answer.json()["error"], (name, answer)


def test_bytes_that_are_no_text_come_back_only_as_binary(connection):
    data = struct.pack("<I", 2) + b"\xff\xfe"
    header = json.dumps({"inputs": [{"name": "IN", "datatype": "BYTES", "shape": [1],
                                     "parameters": {"binary_data_size": len(data)}}]}).encode()
    answer = connection.ask(raw_http.post("/v2/models/bytes/infer", header + data, [
        ("Inference-Header-Content-Length", len(header))]))
    assert answer.status == 400 and "binary" in answer.json()["error"], answer


def test_an_empty_dimension_does_not_hide_a_huge_one(connection):
    body = raw_http.infer_body([("IN", "FP32", [0, 2**40, 2**40, 2**40, 1, 1], [])])
    answer = connection.ask(raw_http.post("/v2/models/deep/infer", body))
    assert answer.status == 400, answer


# -- heads and framing

@pytest.mark.parametrize("name", HEADS)
def test_a_bad_head_is_refused_and_the_connection_closed(connection, name):
    data, statuses = HEADS[name]
    # A second request behind it must never be answered: that would be smuggled.
    answer = connection.ask(data + raw_http.get("/v2/models/simple"))
    assert answer is not None and answer.status in statuses, answer
    assert answer.json()["error"] and answer.closes
    assert connection.is_closed()


@pytest.mark.parametrize("name", CHUNKS)
def test_bad_chunks_are_refused_and_the_connection_closed(connection, name):
    head = f"POST {INFER} HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    answer = connection.ask(head + CHUNKS[name] + raw_http.get("/v2/models/simple"))
    assert answer is not None and 400 <= answer.status < 500, answer
    assert answer.closes and connection.is_closed()


def test_a_flood_of_chunks_is_refused(served, connection):
    # server#8770: chunks have a limit of their own
    with Bystander(served):
        head = f"POST {INFER} HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        connection.send(head)
        for _ in range(100):
            if not connection.send(b"1\r\nx\r\n" * 1000):
                break
        answer = connection.read()
    assert answer.status == 413 and "65536" in answer.json()["error"], answer


def test_a_chunked_body_beyond_the_limit_is_413_and_not_kept(served, connection):
    before = served.rss_mib()
    with Bystander(served):
        connection.send(f"POST {INFER} HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        piece = b"%x\r\n%s\r\n" % (1 << 20, b" " * (1 << 20))
        for _ in range(70):
            if not connection.send(piece):
                break
        answer = connection.read()
    assert answer.status == 413 and str(64 << 20) in answer.json()["error"], answer
    assert served.rss_mib() < before + 160


def test_a_length_that_promises_more_than_it_brings_costs_no_memory(served):
    before = served.rss_mib()
    held = [raw_http.Connection(served.ports["http"]) for _ in range(200)]
    with Bystander(served):
        for connection in held:
            connection.send(f"POST {INFER} HTTP/1.1\r\nHost: t\r\nContent-Length: {60 << 20}\r\n\r\n".encode() + b"{")
        deadline = time.monotonic() + 1
        server.wait_for(lambda: time.monotonic() > deadline, 3, "a second of silence")
        assert served.rss_mib() < before + 250, "memory follows what arrived, not what was announced"
        for connection in held:
            connection.close()


def test_a_connection_that_says_nothing_more_is_ended(served):
    # slow heads and slow bodies end with 408 and hold nobody up (10 s each)
    with Bystander(served), raw_http.Connection(served.ports["http"]) as head, \
            raw_http.Connection(served.ports["http"]) as body:
        head.send(b"GET /livez HTTP/1.1\r\nHost: t\r\nA: ")
        body.send(f"POST {INFER} HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\n".encode())
        answers, last = {}, time.monotonic()
        while len(answers) < 2 and time.monotonic() < last + 15:
            for name, connection in (("head", head), ("body", body)):
                if name in answers:
                    continue
                connection.send(b"x")  # a byte every now and then
                connection.socket.settimeout(0.25)
                with contextlib.suppress(TimeoutError):
                    answers[name] = connection.read()
        assert {name: answer.status for name, answer in answers.items()} == {"head": 408, "body": 408}


def test_300_slow_clients_hold_nobody_up(served):
    held = [raw_http.Connection(served.ports["http"]) for _ in range(300)]
    with Bystander(served):
        for byte in b"POST /v2/":
            for connection in held:
                connection.send(bytes([byte]))
        for connection in held:
            connection.close()


def test_a_client_that_reads_nothing_holds_nobody_up(served):
    numbers = numpy.zeros(4_000_000, "<f4")
    header = json.dumps({"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 4_000_000],
                                     "parameters": {"binary_data_size": numbers.nbytes}}],
                         "parameters": {"binary_data_output": True}}).encode()
    data = raw_http.post("/v2/models/floats/infer", header + numbers.tobytes(),
                         [("Inference-Header-Content-Length", len(header))])
    with Bystander(served):
        held = [raw_http.Connection(served.ports["http"]) for _ in range(4)]
        for connection in held:
            connection.send(data)
        server.wait_for(lambda: served.metric("baton_requests_total", model="floats", end_reason="ok") >= 4, 20, "runs")
        for connection in held:
            connection.close()


def test_heavy_json_does_not_slow_another_client(served):
    # 20 MB of JSON numbers, parsed on the loop that serves others as well
    row = ",".join(["1.2345678"] * 2_000_000)
    body = f'{{"inputs":[{{"name":"IN","datatype":"FP32","shape":[1,2000000],"data":[{row}]}}]}}'.encode()
    with Bystander(served), raw_http.Connection(served.ports["http"], timeout_s=60) as connection:
        for _ in range(3):
            assert connection.ask(raw_http.post("/v2/models/floats/infer", body)).status == 200


@pytest.mark.parametrize("path", ["/v2/models/" + "a" * 5000 + "/infer", "/v2/models/%00/infer", "/v2/models/../infer",
                                  "/v2/models/simple%2f..%2fsimple/infer", "/v2/models/%ff%fe/infer",
                                  "/v2/models/simple/versions/99999999999999999999/infer",
                                  "/v2/models/simple/versions/-1/infer", "/v2/models/%zz/infer",
                                  "/v2/models//infer", "/v2/models/<script>/infer"])
def test_unknown_names_are_4xx(connection, path):
    answer = connection.ask(raw_http.post(path, GOOD))
    assert answer.status in (400, 404), answer
    assert json.loads(answer.body)["error"]


def test_connections_opened_and_dropped_leave_nothing(served):
    for _ in range(500):
        raw_http.Connection(served.ports["http"]).close()
    for cut in range(1, 200, 7):
        with raw_http.Connection(served.ports["http"]) as connection:
            connection.send(raw_http.post(INFER, GOOD)[:cut])


def test_refusals_are_counted_by_reason(served, connection):
    before = served.metric("baton_refused_total", end_reason="invalid")
    for _ in range(3):
        connection.ask(raw_http.post(INFER, b"{"))
    # tensorrtllm_backend#582: a malformed request counts as a failure
    assert served.metric("baton_refused_total", end_reason="invalid") - before == 3
