"""gRPC's HTTP/2 by hand: floods of frames, clients that stall, calls that are none."""

import struct
import threading
import time

import grpc
import numpy
import pytest
from onnx import helper
from tritonclient.grpc import service_pb2, service_pb2_grpc

from harness import http2, models, raw_http, server
from harness.http2 import (CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, RST_STREAM, SETTINGS,
                           frame, literal)

NO_WINDOW = b"\x00\x04" + bytes(4)  # SETTINGS_INITIAL_WINDOW_SIZE 0: nothing may be sent


def constant_model(numbers):
    node = helper.make_node("Constant", [], ["Y"], value=models.constant("c", numpy.float32(range(numbers))))
    return models.model([node], [], [models.value("Y", "FP32", [numbers])])


@pytest.fixture(scope="module", name="folder")
def make_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("http2")
    models.write(folder, "much_out", constant_model(100_000))
    models.write(folder, "little_out", constant_model(10))
    return folder


@pytest.fixture(scope="module", name="served")
def serve(folder, tmp_path_factory):
    with server.Server(folder, folder=tmp_path_factory.mktemp("http2-server")) as running:
        yield running.wait_ready()


def infer_message(model="little_out"):
    return http2.message(service_pb2.ModelInferRequest(model_name=model).SerializeToString())


class Bystander:
    """Another client that calls all the time; how long its slowest call took."""

    def __init__(self, running):
        self.running, self.slowest, self.calls, self.over = running, 0.0, 0, False
        self.thread = threading.Thread(target=self._call)

    def _call(self):
        with grpc.insecure_channel(self.running.address("grpc")) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            while not self.over:
                start = time.monotonic()
                stub.ModelInfer(service_pb2.ModelInferRequest(model_name="little_out"), timeout=20)
                self.slowest = max(self.slowest, time.monotonic() - start)
                self.calls += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()


@pytest.mark.parametrize("model, size", [("much_out", 400_000), ("little_out", 40)])
def test_a_client_that_takes_nothing_is_cut_off(make_server, folder, tmp_path, model, size):
    (tmp_path / "baton.yaml").write_text("version: 1\nlimits: {write_stall: 500ms}\n")
    running = make_server(folder, arguments=["-c", tmp_path / "baton.yaml"])
    with http2.Connection(running.ports["grpc"], NO_WINDOW) as client:
        client.send(frame(HEADERS, END_HEADERS, 1, http2.head())
                    + frame(DATA, END_STREAM, 1, infer_message(model)))
        server.wait_for(lambda: running.metric("baton_unwritten_answer_bytes") == size, 10, "a waiting answer")
        server.wait_for(lambda: running.metric("baton_unwritten_answer_bytes") == 0, 10, "its end")
        assert running.metric("baton_listener_write_stalls_total", listener="grpc") == 1


def test_a_deadline_centuries_away_is_none(served):
    with http2.Connection(served.ports["grpc"]) as client:
        client.send(frame(HEADERS, END_HEADERS, 1, http2.head(http2.INFER, literal(b"grpc-timeout", b"99999999H")))
                    + frame(DATA, END_STREAM, 1, infer_message()))
        assert b"little_out" in client.answer(1)


@pytest.mark.parametrize("name, more", [("timeout", literal(b"grpc-timeout", b"soon")),
                                        ("encoding", literal(b"grpc-encoding", b"br")),
                                        ("metadata", b"".join(literal(b"x-%d" % i, b"a" * 100) for i in range(130)))])
def test_a_call_with_a_wrong_head_ends_alone(served, name, more):
    """Its connection serves on."""
    del name
    with http2.Connection(served.ports["grpc"]) as client:
        block = http2.head(http2.INFER, more)
        client.send(frame(HEADERS, 0, 1, block[:10_000]) + frame(CONTINUATION, END_HEADERS, 1, block[10_000:])
                    + frame(DATA, END_STREAM, 1, infer_message()))
        assert client.answer(1) == b""
        client.send(frame(HEADERS, END_HEADERS, 3, http2.head()) + frame(DATA, END_STREAM, 3, infer_message()))
        assert b"little_out" in client.answer(3)


@pytest.mark.parametrize("body", [b"\x00\xff\xff\xff\xff", b"\x01\x00\x00\x00\x01a", b"\x07\x00\x00\x00\x01a",
                                  b"\x00\x00\x00\x00\x05ab", b"\x00", b""])
def test_a_call_with_a_broken_message_ends_alone(served, body):
    with http2.Connection(served.ports["grpc"]) as client:
        client.send(frame(HEADERS, END_HEADERS, 1, http2.head()) + frame(DATA, END_STREAM, 1, body))
        assert client.answer(1) == b""
        client.send(frame(HEADERS, END_HEADERS, 3, http2.head()) + frame(DATA, END_STREAM, 3, infer_message()))
        assert b"little_out" in client.answer(3)


def test_what_is_no_call_gets_an_http_status(served):
    before = served.metric("baton_listener_bad_requests_total", listener="grpc")
    with http2.Connection(served.ports["grpc"]) as client:
        get = b"\x82\x86" + literal(b":path", b"/v2") + literal(b":authority", b"a")
        client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, get))
        assert client.answer(1) == b""
        post = b"\x83\x86" + literal(b":path", b"/v2") + literal(b":authority", b"a") + literal(b"content-type", b"a/b")
        client.send(frame(HEADERS, END_HEADERS | END_STREAM, 3, post))
        assert client.answer(3) == b""
    assert served.metric("baton_listener_bad_requests_total", listener="grpc") == before + 2
    with raw_http.Connection(served.ports["grpc"]) as client:  # HTTP/1
        client.send(b"GET /v2 HTTP/1.1\r\nHost: a\r\n\r\n")
        while client.socket.recv(4096):
            pass


def flood(running, seconds, connect, more):
    """Sends `more(n)` for a while, again and again on new connections; how many there were."""
    end = time.monotonic() + seconds
    connections = 0
    while time.monotonic() < end:
        connections += 1
        with http2.Connection(running.ports["grpc"]) as client:
            client.send(connect)
            client.socket.settimeout(2)
            for number in range(1 << 30):
                try:
                    if not client.send(more(number)) or time.monotonic() > end:
                        break
                except TimeoutError:  # the server does not read what nobody lets it answer
                    break
    return connections


def resets(number):
    streams = range(2 * 100 * number + 1, 2 * 100 * (number + 1), 2)
    return b"".join(frame(HEADERS, END_HEADERS, stream, http2.head()) + frame(DATA, END_STREAM, stream, infer_message())
                    + frame(RST_STREAM, 0, stream, struct.pack(">I", 8)) for stream in streams)


FLOODS = {
    "continuation": (frame(HEADERS, 0, 1, http2.head()),
                     lambda _: b"".join(frame(CONTINUATION, 0, 1, literal(b"x-%d" % i, b"a" * 100))
                                        for i in range(100))),
    "empty continuation": (frame(HEADERS, 0, 1, http2.head()), lambda _: frame(CONTINUATION, 0, 1) * 1000),
    "rapid reset": (b"", resets),
    "ping": (b"", lambda _: frame(PING, 0, 0, bytes(8)) * 1000),
    "settings": (b"", lambda _: frame(SETTINGS, 0, 0, NO_WINDOW) * 1000),
    "empty data": (frame(HEADERS, END_HEADERS, 1, http2.head()), lambda _: frame(DATA, 0, 1) * 1000),
}


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_of_frames_costs_no_memory_and_nobody_else(served, kind):
    connect, more = FLOODS[kind]
    with Bystander(served) as other:
        server.wait_for(lambda: other.calls > 10, 10, "answers")
        before = served.rss_mib()
        connections = flood(served, 3, connect, more)
        grown = served.rss_mib() - before
    assert grown < 64, f"{grown} MiB over {connections} connections"
    assert other.slowest < 1, f"another client waited {other.slowest:.2f} s"
    server.wait_for(lambda: served.metric("inference_requests_in_flight") == 0, 10, "no work in flight")


def test_many_open_calls_are_bounded(served):
    """Heads without end: 1024 calls of a connection are open at most, the others are refused."""
    with http2.Connection(served.ports["grpc"]) as client:
        client.send(b"".join(frame(HEADERS, END_HEADERS, stream, http2.head()) for stream in range(1, 2600, 2)))
        refused = set()
        for kind, _, stream, _ in client.frames():
            if kind in (RST_STREAM, GOAWAY):
                refused.add(stream)
                break
        assert refused


def test_typed_contents_are_counted_before_they_are_parsed(served):
    """60 MiB of empty strings would be 2 GiB in memory."""
    tensor = service_pb2.ModelInferRequest.InferInputTensor(name="x", datatype="BYTES", shape=[30 << 20])
    contents = b"\x42\x00" * (30 << 20)  # field 8, no bytes
    head = tensor.SerializeToString()
    varint = lambda n: bytes([(n >> shift & 127) | (128 if n >> (shift + 7) else 0) for shift in range(0, 28, 7)
                              if shift == 0 or n >> shift])
    tensor = head + b"\x2a" + varint(len(contents)) + contents
    data = b"\x0a\x0alittle_out" + b"\x2a" + varint(len(tensor)) + tensor
    before = served.rss_mib()
    peak = [before]
    with Bystander(served) as other, grpc.insecure_channel(served.address("grpc")) as channel:
        call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer").future(data, timeout=30)
        while not call.done():
            peak.append(served.rss_mib())
        assert call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, call.details()
    assert max(peak) < before + 300
    assert other.slowest < 1


def test_an_idle_peer_that_answers_nothing_does_not_delay_the_end(make_server, folder):
    running = make_server(folder)
    with http2.Connection(running.ports["grpc"]):
        start = time.monotonic()
        assert running.stop() == 0
        assert time.monotonic() - start < 6
