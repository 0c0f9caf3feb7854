"""REST as any HTTP client speaks it: routes, JSON numbers, the binary extension, framing of bodies."""

import json
import math
import struct
import time

import numpy
import pytest

from harness import raw_http

PAIR = raw_http.infer_body([("INPUT0", "INT32", [1, 16], list(range(16))), ("INPUT1", "INT32", [1, 16], [1] * 16)])
SUM = [number + 1 for number in range(16)]


@pytest.fixture(name="connection")
def open_connection(general):
    with raw_http.Connection(general.ports["http"]) as made:
        yield made


def echo(server, datatype, data, shape, outputs=None, **more):
    """What the identity model of a datatype gives back, sent as JSON."""
    body = {"inputs": [{"name": "IN", "datatype": datatype, "shape": shape, "data": data}]}
    if outputs:
        body["outputs"] = outputs
    return server.infer(f"identity_{datatype.lower()}", body, **more)


def binary_body(header, data):
    text = json.dumps(header).encode()
    return text + data, {"Inference-Header-Content-Length": str(len(text))}


# -- health and routes


@pytest.mark.parametrize(
    "path", ["/livez", "/readyz", "/v2/health/live", "/v2/health/ready", "/v2/models/simple/ready"])
def test_health_routes(general, path):
    assert general.get(path).status == 200


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
def test_health_on_the_metrics_port(general, path):
    assert general.get(path, protocol="metrics").status == 200


@pytest.mark.parametrize("method, path, status", [
    ("GET", "/v2/models/simple/infer", 405), ("POST", "/v2/models/simple", 405), ("DELETE", "/v2", 405),
    ("GET", "/v3", 404), ("GET", "/", 404), ("GET", "/v2/models/simple/nothing", 404),
    ("GET", "/v2/models/simple/versions/0", 400), ("GET", "/v2/models/simple/versions/x/ready", 400),
    ("GET", "/v2/models/simple/versions/1", 200), ("GET", "/v2/models/nothing", 404),
    ("GET", "/v2/models/%73imple", 200), ("GET", "/v2/models/simple%00", 404), ("GET", "/v2/models/..%2f", 404),
])
def test_routes(general, method, path, status):
    answer = general.request(path, method=method)
    assert answer.status == status, answer.body
    if status >= 400:
        assert set(answer.json()) >= {"error", "reason"} and answer.json()["error"]


def test_one_connection_serves_many_requests(connection):
    for _ in range(50):
        answer = connection.ask(raw_http.post("/v2/models/simple/infer", PAIR))
        assert answer.status == 200 and answer.json()["outputs"][0]["data"] == SUM
        assert not answer.closes


def test_pipelined_requests_are_answered_in_order(connection):
    connection.send(raw_http.post("/v2/models/simple/infer", PAIR) + raw_http.get("/v2/models/nothing")
                    + raw_http.get("/livez"))
    assert [connection.read().status for _ in range(3)] == [200, 404, 200]


# -- JSON


@pytest.mark.parametrize("datatype, data", [
    ("UINT64", [0, 9007199254740993, 18446744073709551615]),
    ("INT64", [-9223372036854775808, 9007199254740993, 9223372036854775807]),  # U147
    ("UINT8", [0, 255, 7]), ("INT8", [-128, 127, 0]), ("UINT32", [0, 4294967295, 1]), ("BOOL", [True, False, True]),
    ("FP64", [0.1, 5e-324, -1.7976931348623157e308]), ("BYTES", ["a\u0000b", "käse ✓", ""]),
])
def test_json_values_are_exact(general, datatype, data):
    answer = echo(general, datatype, data, [1, 3])
    assert answer.status == 200, answer.body
    assert answer.json()["outputs"][0]["data"] == data


@pytest.mark.parametrize("datatype, data, expected", [
    ("FP16", [0.1, 65504, 5.960464477539063e-08], [0x2E66, 0x7BFF, 0x0001]),
    ("BF16", [0.1, 3.0, 1.0000001], [0x3DCD, 0x4040, 0x3F80]),
])
def test_half_floats_travel_as_json_numbers(general, datatype, data, expected):
    # U143, server#5960, kserve#3643: accepted as an extension, rounded to nearest, exact on the way back
    answer = echo(general, datatype, data, [1, 3], [{"name": "OUT", "parameters": {"binary_data": True}}])
    assert answer.status == 200, answer.body
    length = int(answer.headers["Inference-Header-Content-Length"])
    assert list(struct.unpack("<3H", answer.body[length:])) == expected
    back = echo(general, datatype, data, [1, 3]).json()["outputs"][0]["data"]
    kind = numpy.float16 if datatype == "FP16" else numpy.float32
    again = numpy.array(back, kind).view(numpy.uint16 if datatype == "FP16" else numpy.uint32)
    assert [int(bits) >> (0 if datatype == "FP16" else 16) for bits in again] == expected


def test_negative_zero_keeps_its_sign(general):
    answer = echo(general, "FP32", [-0.0], [1, 1])
    number = answer.json()["outputs"][0]["data"][0]
    assert math.copysign(1, number) == -1, answer.body


@pytest.mark.parametrize("bits", [0x7F800000, 0xFF800000, 0x7FC00000])
def test_what_json_cannot_say_is_refused_or_still_json(general, bits):
    header = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 1], "parameters": {"binary_data_size": 4}}]}
    body, headers = binary_body(header, struct.pack("<I", bits))
    answer = general.infer("identity_fp32", body, headers=headers)

    def refuse(word):
        raise ValueError(f"{word} is no JSON")
    found = json.loads(answer.body, parse_constant=refuse)
    if answer.status == 200:
        assert found["outputs"][0]["data"] in ([None], ["NaN"], ["Infinity"], ["-Infinity"])
    else:
        assert answer.status == 400 and "binary" in found["error"]


def test_nested_and_flat_data_are_the_same(general):
    flat = echo(general, "INT32", [1, 2, 3, 4], [2, 2]).json()["outputs"]
    nested = echo(general, "INT32", [[1, 2], [3, 4]], [2, 2]).json()["outputs"]
    assert flat == nested and flat[0]["data"] == [1, 2, 3, 4]


@pytest.mark.parametrize("datatype, data", [
    ("INT32", [2147483648]), ("INT32", [1.5]), ("INT32", ["1"]), ("UINT8", [-1]), ("UINT8", [256]),
    ("INT64", [9223372036854775808]), ("UINT64", [-1]), ("BOOL", [2]), ("BYTES", [7]), ("FP32", ["x"]),
    ("FP32", [None]), ("INT64", [1e30]),
])
def test_values_that_do_not_fit_their_datatype_are_invalid(general, datatype, data):
    answer = echo(general, datatype, data, [1, 1])
    assert answer.status == 400 and "IN" in answer.json()["error"], answer.body


def test_fields_in_any_order(general):
    body = b'{"outputs":[{"name":"OUTPUT0"}],"inputs":[' + b",".join(
        b'{"data":[%s],"shape":[1,16],"parameters":{},"datatype":"INT32","name":"INPUT%d"}'
        % (b",".join([b"1"] * 16), index) for index in (1, 0)) + b'],"unknown":{"a":[1]},"id":"x"}'
    answer = general.infer("simple", body)
    assert answer.status == 200 and answer.json()["outputs"][0]["data"] == [2] * 16 and answer.json()["id"] == "x"


# -- the binary extension


def test_binary_in_json_out_and_json_in_binary_out(general):
    numbers = numpy.arange(6, dtype="<f4")
    header = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [2, 3], "parameters": {"binary_data_size": 24}}]}
    body, headers = binary_body(header, numbers.tobytes())
    answer = general.infer("identity_fp32", body, headers=headers)
    assert answer.json()["outputs"][0]["data"] == numbers.tolist()
    request = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [2, 3], "data": numbers.tolist()}],
               "parameters": {"binary_data_output": True}}
    answer = general.infer("identity_fp32", request)
    length = int(answer.headers["Inference-Header-Content-Length"])
    described = json.loads(answer.body[:length])["outputs"][0]
    assert described["parameters"]["binary_data_size"] == 24 and "data" not in described
    assert answer.body[length:] == numbers.tobytes()


def test_one_output_binary_and_the_other_json(general):
    request = json.loads(PAIR) | {"outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": True}},
                                              {"name": "OUTPUT1"}]}
    answer = general.infer("simple", request)
    length = int(answer.headers["Inference-Header-Content-Length"])
    outputs = {item["name"]: item for item in json.loads(answer.body[:length])["outputs"]}
    assert outputs["OUTPUT1"]["data"] == [number - 1 for number in range(16)]
    assert list(struct.unpack("<16i", answer.body[length:])) == SUM


def test_a_large_tensor_passes_both_ways(general):
    # U051: limits are at least 32 MiB; server#1776: 33 MB
    numbers = numpy.arange(9_000_000, dtype="<f4")
    header = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 9_000_000],
                          "parameters": {"binary_data_size": numbers.nbytes}}],
              "parameters": {"binary_data_output": True}}
    body, headers = binary_body(header, numbers.tobytes())
    answer = general.infer("identity_fp32", body, headers=headers, timeout_s=60)
    assert answer.status == 200
    assert answer.body[int(answer.headers["Inference-Header-Content-Length"]):] == numbers.tobytes()


def test_beyond_the_limit_is_413_with_the_limit(connection):
    # U051: 413 as JSON naming the limit, not a misleading 404 or 500
    connection.send(f"POST /v2/models/simple/infer HTTP/1.1\r\nHost: t\r\nContent-Length: {65 << 20}\r\n\r\n".encode())
    answer = connection.read()
    assert answer.status == 413 and str(64 << 20) in answer.json()["error"], answer
    assert connection.is_closed()


# -- framing


def test_expect_100_continue_is_answered_at_once(connection):
    # U045: a client that waits for 100 Continue loses no second
    body = PAIR + b" " * 2048
    head = (f"POST /v2/models/simple/infer HTTP/1.1\r\nHost: t\r\nContent-Length: {len(body)}\r\n"
            "Expect: 100-continue\r\n\r\n").encode()
    waits = []
    for _ in range(5):
        started = time.monotonic()
        connection.send(head)
        status, _ = connection.read_head()
        waits.append(time.monotonic() - started)
        assert status == 100
        answer = connection.ask(body)
        assert answer.status == 200 and answer.json()["outputs"][0]["data"] == SUM
        assert time.monotonic() - started < 0.2
    assert min(waits) < 0.05


@pytest.mark.parametrize("path, length, status", [("/v2/models/simple/infer", 65 << 20, 413), ("/nothing", 10, 404),
                                                  ("/v2/models/simple", 10, 405)])
def test_a_refusal_comes_instead_of_100_continue(connection, path, length, status):
    # U046: a request that will be refused gets its final answer, its body is not waited for
    connection.send(f"POST {path} HTTP/1.1\r\nHost: t\r\nContent-Length: {length}\r\nExpect: 100-continue\r\n\r\n"
                    .encode())
    found, _ = connection.read_head()
    assert found == status


@pytest.mark.parametrize("cut", [1, 7, 64, 10_000])
def test_a_chunked_body_gives_the_same_answer(connection, cut):
    # U048: not truncated, not empty, not 411
    pieces = [PAIR[at:at + cut] for at in range(0, len(PAIR), cut)]
    answer = connection.ask(raw_http.chunked("/v2/models/simple/infer", pieces))
    assert answer.status == 200 and answer.json()["outputs"][0]["data"] == SUM


def test_chunk_extensions_and_trailers_are_accepted(connection):
    # U048
    request = (b"POST /v2/models/simple/infer HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
               + b"%x;name=\"v\"\r\n%s\r\n" % (len(PAIR), PAIR) + b"0\r\nX-Trailer: yes\r\n\r\n")
    answer = connection.ask(request)
    assert answer.status == 200 and answer.json()["outputs"][0]["data"] == SUM
    assert connection.ask(raw_http.get("/livez")).status == 200


@pytest.mark.parametrize("method", ["DELETE", "OPTIONS", "GET", "PUT"])
def test_a_chunked_body_with_any_method_keeps_the_framing(general, method):
    # U050: framed correctly or refused with the connection closed; nothing of the body is taken for a request
    with raw_http.Connection(general.ports["http"]) as connection:
        inner = raw_http.get("/livez")
        connection.send(f"{method} /v2/models/simple HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
                        + b"%x\r\n%s\r\n0\r\n\r\n" % (len(inner), inner) + raw_http.get("/v2/models/nothing"))
        first = connection.read()
        assert first.status in (200, 405, 400)
        if first.closes:
            assert connection.is_closed()
        else:
            assert connection.read().status == 404


def test_head_and_http_1_0(connection, general):
    connection.send(b"HEAD /v2/models/simple HTTP/1.1\r\nHost: t\r\n\r\n")
    answer = connection.read(head_request=True)
    assert answer.status in (200, 405)
    with raw_http.Connection(general.ports["http"]) as old:
        assert old.ask(b"GET /livez HTTP/1.0\r\n\r\n").status == 200
        assert old.is_closed()


def test_an_idle_connection_outlives_the_pools_of_clients(general):
    # U043, the server's side: a pool that reuses a socket after 5 s idle meets it open
    with raw_http.Connection(general.ports["http"]) as connection:
        assert connection.ask(raw_http.get("/livez")).status == 200
        assert not connection.is_closed(within_s=5.5)
        assert connection.ask(raw_http.get("/livez")).status == 200


# -- deadlines and classes in headers


@pytest.mark.parametrize("name, text", [("X-Request-Timeout-Ms", "0"), ("X-Request-Timeout-Ms", "-5"),
                                        ("X-Request-Timeout-Ms", "1e3"), ("X-Request-Timeout-Ms", "99999999999"),
                                        ("X-Request-Class", "urgent")])
def test_headers_that_say_nothing_sensible_are_invalid(connection, name, text):
    answer = connection.ask(raw_http.post("/v2/models/simple/infer", PAIR, [(name, text)]))
    assert answer.status == 400 and name in answer.json()["error"], answer
