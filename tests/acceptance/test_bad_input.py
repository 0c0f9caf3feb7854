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

INFER = "/v2/models/simple/infer"
ONES = b",".join([b"1"] * 16)


def tensor(name="INPUT0", datatype="INT32", shape="[1,16]", data=None, more=""):
    data = b"[" + ONES + b"]" if data is None else data
    text = f'{{"name":"{name}","datatype":"{datatype}","shape":{shape},"data":'.encode()
    return text + data + more.encode() + b"}"


def request(*inputs, more=""):
    return b'{"inputs":[' + b",".join(inputs) + b"]" + more.encode() + b"}"


GOOD = request(tensor("INPUT0"), tensor("INPUT1"))


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

BODIES = {
    "empty": b"",
    "no object": b"[]",
    "a number": b"7",
    "truncated": GOOD[:-5],
    "cut in a string": GOOD[:14],
    "trailing garbage": GOOD + b"x",
    "a second document": GOOD + GOOD,
    "trailing NUL": GOOD + b"\0",
    "a broken tail behind the inputs": GOOD[:-1] + b',"more":[1,2,}',
    "an unknown key with a broken value": GOOD[:-1] + b',"more":tru}',
    "duplicate key": GOOD[:-1] + b',"inputs":[]}',
    "duplicate key in an input": request(tensor(more=',"shape":[1,16]'), tensor("INPUT1")),
    "duplicate key in parameters": GOOD[:-1] + b',"parameters":{"priority":1,"priority":1}}',
    "duplicate key by escape": GOOD[:-1] + b',"id":"a","\\u0069d":"b"}',
    "comment": b"/**/" + GOOD,
    "single quotes": GOOD.replace(b'"', b"'"),
    "not UTF-8": GOOD[:-1] + b',"id":"\xff\xfe"}',
    "lone surrogate": GOOD[:-1] + b',"id":"\\ud800"}',
    "UTF-16": GOOD.decode().encode("utf-16"),
    "control character in a string": GOOD[:-1] + b',"id":"a\nb"}',
    "NaN": request(tensor(data=b"[" + ONES[:-1] + b"NaN]"), tensor("INPUT1")),
    "leading zeros": request(tensor(data=b"[" + ONES[:-1] + b"01]"), tensor("INPUT1")),
    "hexadecimal": request(tensor(data=b"[" + ONES[:-1] + b"0x1]"), tensor("INPUT1")),
    "no inputs": b'{"outputs":[]}',
    "inputs empty": b'{"inputs":[]}',
    "inputs no array": b'{"inputs":{}}',
    "an input no object": b'{"inputs":[1,2]}',
    "name missing": GOOD.replace(b'"name":"INPUT0",', b""),
    "name a number": GOOD.replace(b'"INPUT0"', b"7"),
    "name with NUL": GOOD.replace(b'"INPUT0"', b'"INPUT0\\u0000"'),
    "name twice": request(tensor("INPUT0"), tensor("INPUT0")),
    "three times": request(tensor("INPUT0"), tensor("INPUT1"), tensor("INPUT1")),
    "unknown input": request(tensor("INPUT0"), tensor("OTHER")),
    "datatype missing": GOOD.replace(b'"datatype":"INT32",', b"", 1),
    "datatype unknown": GOOD.replace(b"INT32", b"INT33", 1),
    "datatype lower case": GOOD.replace(b"INT32", b"int32", 1),
    "datatype of another": GOOD.replace(b"INT32", b"FP32", 1),
    "datatype null": GOOD.replace(b'"INT32"', b"null", 1),
    "shape missing": GOOD.replace(b'"shape":[1,16],', b"", 1),
    "shape a number": GOOD.replace(b"[1,16]", b"16", 1),
    "shape negative": GOOD.replace(b"[1,16]", b"[-1,16]", 1),
    "shape -1 and -16": GOOD.replace(b"[1,16]", b"[-1,-16]", 1),
    "shape fractional": GOOD.replace(b"[1,16]", b"[1.0,16]", 1),
    "shape zero": GOOD.replace(b"[1,16]", b"[0,16]", 1),
    "shape beyond 64 bits": GOOD.replace(b"[1,16]", b"[1,18446744073709551616]", 1),
    "shape product overflows": GOOD.replace(b"[1,16]", b"[4294967296,4294967296]", 1),
    "shape product wraps to 16": GOOD.replace(b"[1,16]", b"[9223372036854775808,32]", 1),
    "shape product times size overflows": GOOD.replace(b"[1,16]", b"[1,4611686018427387904]", 1),
    "shape of 10,000 dimensions": GOOD.replace(b"[1,16]", b"[" + b"1," * 10_000 + b"16]", 1),
    "data missing": GOOD.replace(b',"data":[' + ONES + b"]", b"", 1),
    "data null": GOOD.replace(b"[" + ONES + b"]", b"null", 1),
    "data a string": GOOD.replace(b"[" + ONES + b"]", b'"AAAA"', 1),
    "data too short": GOOD.replace(ONES, ONES[2:], 1),
    "data too long": GOOD.replace(ONES, ONES + b",1", 1),
    "data with an object": GOOD.replace(ONES, ONES[:-1] + b"{}", 1),
    "data twice nested differently": GOOD.replace(ONES, b"[1,[2]]," + ONES, 1),
    "data beyond the type": GOOD.replace(ONES, ONES[:-1] + b"3000000000", 1),
    "data of mixed kinds": GOOD.replace(ONES, ONES[:-1] + b'"1"', 1),
    "data and binary_data_size": GOOD.replace(b'"name":"INPUT0"',
                                              b'"name":"INPUT0","parameters":{"binary_data_size":64}'),
    "binary_data_size without bytes": GOOD.replace(b',"data":[' + ONES + b"]",
                                                   b',"parameters":{"binary_data_size":64}', 1),
    "binary_data_size negative": GOOD.replace(b',"data":[' + ONES + b"]", b',"parameters":{"binary_data_size":-64}', 1),
    "binary_data_size huge": GOOD.replace(b',"data":[' + ONES + b"]",
                                          b',"parameters":{"binary_data_size":18446744073709551615}', 1),
    "binary_data_size a string": GOOD.replace(b',"data":[' + ONES + b"]",
                                              b',"parameters":{"binary_data_size":"64"}', 1),
    "parameters no object": GOOD[:-1] + b',"parameters":[]}',
    "timeout negative": GOOD[:-1] + b',"parameters":{"timeout":-1}}',
    "timeout a string": GOOD[:-1] + b',"parameters":{"timeout":"1"}}',
    "timeout beyond 64 bits": GOOD[:-1] + b',"parameters":{"timeout":18446744073709551616}}',
    "timeout of 585,000 years": GOOD[:-1] + b',"parameters":{"timeout":18446744073709551615}}',
    "priority negative": GOOD[:-1] + b',"parameters":{"priority":-1}}',
    "priority beyond the levels": GOOD[:-1] + b',"parameters":{"priority":4294967297}}',
    "reserved parameter": GOOD[:-1] + b',"parameters":{"triton_final":1}}',  # server#8763
    "id a number": GOOD[:-1] + b',"id":7}',
    "outputs no array": GOOD[:-1] + b',"outputs":{}}',
    "an output without a name": GOOD[:-1] + b',"outputs":[{}]}',
    "unknown output": GOOD[:-1] + b',"outputs":[{"name":"X"}]}',
    "an output twice": GOOD[:-1] + b',"outputs":[{"name":"OUTPUT0"},{"name":"OUTPUT0"}]}',
    "nested 2,000 deep": b'{"inputs":' + b"[" * 2000 + b"]" * 2000 + b"}",  # server#8770
    "nested 2,000 deep where ignored": GOOD[:-1] + b',"more":' + b"[" * 2000 + b"]" * 2000 + b"}",
    "data nested 2,000 deep": GOOD.replace(ONES, b"[" * 2000 + ONES + b"]" * 2000, 1),
    "opened a million times": b"[" * 1_000_000,
    "objects opened 100,000 times": b'{"a":' * 100_000,
    "5,000 inputs": request(*[tensor(f"I{index}") for index in range(5000)]),
    "5,000 outputs": GOOD[:-1] + b',"outputs":[' + b",".join([b'{"name":"OUTPUT0"}'] * 5000) + b"]}",
}


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


@pytest.mark.xfail(strict=True, reason="the first Inference-Header-Content-Length counts, a second one is ignored")
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

HEADS = {
    "no request line": (b"\r\n\r\n\r\n\r\n\r\n\r\nnothing\r\n\r\n", {400}),
    "two words": (b"GET /livez\r\nHost: t\r\n\r\n", {400}),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 505}),
    "TLS hello": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32), {400}),
    "unknown version": (b"GET /livez HTTP/3.0\r\nHost: t\r\n\r\n", {505}),
    "lower case version": (b"GET /livez http/1.1\r\nHost: t\r\n\r\n", {400}),
    "bare line feeds": (b"GET /livez HTTP/1.1\nHost: t\n\n", {400}),
    "NUL in the target": (b"GET /li\0vez HTTP/1.1\r\nHost: t\r\n\r\n", {400}),
    "NUL in a header": (b"GET /livez HTTP/1.1\r\nHost: t\r\nA: b\0c\r\n\r\n", {400}),
    "NUL in a name": (b"GET /livez HTTP/1.1\r\nHost: t\r\nA\0: b\r\n\r\n", {400}),
    "blank before the colon": (b"GET /livez HTTP/1.1\r\nHost: t\r\nContent-Length : 5\r\n\r\n", {400}),
    "folded header": (b"GET /livez HTTP/1.1\r\nHost: t\r\nA: b\r\n c\r\n\r\n", {400}),
    "no colon": (b"GET /livez HTTP/1.1\r\nHost: t\r\nnonsense\r\n\r\n", {400}),
    "no host": (b"GET /livez HTTP/1.1\r\n\r\n", {400}),
    "two hosts": (b"GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", {400}),
    "CONNECT": (b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", {400, 405, 501}),
    "carriage return alone": (b"GET /livez HTTP/1.1\rHost: t\r\n\r\n", {400}),
    "target of 20,000 bytes": (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: t\r\n\r\n", {414}),
    "header of 100,000 bytes": (b"GET /livez HTTP/1.1\r\nHost: t\r\nA: " + b"a" * 100_000 + b"\r\n\r\n", {431}),
    "5,000 headers": (b"GET /livez HTTP/1.1\r\nHost: t\r\n" + b"A: b\r\n" * 5000 + b"\r\n", {431}),
    "method of 1,000 bytes": (b"A" * 1000 + b" /livez HTTP/1.1\r\nHost: t\r\n\r\n", {400, 501}),
    "unknown expectation": (b"POST /v2/models/simple/infer HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n"
                            b"Expect: the-unexpected\r\n\r\n", {417}),
    "content length negative": (b"POST /livez HTTP/1.1\r\nHost: t\r\nContent-Length: -1\r\n\r\n", {400}),
    "content length signed": (b"POST /livez HTTP/1.1\r\nHost: t\r\nContent-Length: +1\r\n\r\n1", {400}),
    "content length hexadecimal": (b"POST /livez HTTP/1.1\r\nHost: t\r\nContent-Length: 0x1\r\n\r\n1", {400}),
    "content length beyond 64 bits": (b"POST /livez HTTP/1.1\r\nHost: t\r\n"
                                      b"Content-Length: 18446744073709551617\r\n\r\n", {400, 413}),
    "content length of 2^63": (b"POST /livez HTTP/1.1\r\nHost: t\r\nContent-Length: 9223372036854775808\r\n\r\n",
                               {400, 413}),
    "content length twice": (b"POST /livez HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n12345",
                             {400}),
    "content length as a list": (b"POST /livez HTTP/1.1\r\nHost: t\r\nContent-Length: 5, 5\r\n\r\n12345", {400}),
    "content length twice and different": (b"POST /livez HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n"
                                           b"Content-Length: 6\r\n\r\n123456", {400}),
    "length and chunks": (b"POST /livez HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                          b"0\r\n\r\n", {400}),
    "chunks twice": (b"POST /livez HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400}),
    "chunked, chunked": (b"POST /livez HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
                         {400, 501}),
    "chunked, identity": (b"POST /livez HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
                          {400, 501}),
    "gzip, chunked": (b"POST /livez HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
                      {400, 501}),
    "xchunked": (b"POST /livez HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", {400, 501}),
    "chunked with a vertical tab": (b"POST /livez HTTP/1.1\r\nHost: t\r\nTransfer-Encoding:\x0bchunked\r\n\r\n"
                                    b"0\r\n\r\n", {400, 501}),
    "chunked in HTTP/1.0": (b"POST /livez HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400, 501}),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_bad_head_is_refused_and_the_connection_closed(connection, name):
    data, statuses = HEADS[name]
    # A second request behind it must never be answered: that would be smuggled.
    answer = connection.ask(data + raw_http.get("/v2/models/simple"))
    assert answer is not None and answer.status in statuses, answer
    assert answer.json()["error"] and answer.closes
    assert connection.is_closed()


CHUNKS = {
    "no size": b"\r\nabc\r\n0\r\n\r\n",
    "size negative": b"-1\r\nabc\r\n0\r\n\r\n",
    "size with 0x": b"0x3\r\nabc\r\n0\r\n\r\n",
    "size with blanks": b" 3\r\nabc\r\n0\r\n\r\n",
    "size beyond 64 bits": b"10000000000000003\r\nabc\r\n0\r\n\r\n",
    "size of 2^64-1": b"ffffffffffffffff\r\nabc\r\n0\r\n\r\n",
    "size of 500 digits": b"0" * 500 + b"3\r\nabc\r\n0\r\n\r\n",
    "data longer than its size": b"3\r\nabcd\r\n0\r\n\r\n",
    "line feed alone": b"3\nabc\n0\n\n",
    "NUL in the extension": b"3;a=\0\r\nabc\r\n0\r\n\r\n",
    "line feed in the extension": b"3;a=\nb\r\nabc\r\n0\r\n\r\n",
    "extension of 100,000 bytes": b"3;" + b"a" * 100_000 + b"\r\nabc\r\n0\r\n\r\n",
    "bad trailer": b"0\r\nnonsense\r\n\r\n",
    "trailers of 100,000 bytes": b"0\r\n" + b"A: b\r\n" * 17_000 + b"\r\n",
}


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
