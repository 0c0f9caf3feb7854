"""Compressed bodies both ways: tritonclient's algorithms, headers, and bodies that want to grow without bound."""

import gzip
import json
import zlib

import numpy
import pytest

from harness import clients, models, raw_http, server

BODY_MIB = 8
PACK = {"gzip": gzip.compress, "deflate": zlib.compress}
UNPACK = {"gzip": gzip.decompress, "deflate": zlib.decompress}
PAIR = raw_http.infer_body([("INPUT0", "INT32", [1, 16], list(range(16))), ("INPUT1", "INT32", [1, 16], [1] * 16)])
INFER = "/v2/models/simple/infer"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compression")
    models.write_simple(folder)
    models.write(folder, "floats", models.identity("FP32", [-1, -1]))
    settings = folder / "baton.yaml"
    settings.write_text(f"version: 1\nlimits: {{body: {BODY_MIB}MiB}}\n")
    with server.Server(folder, folder=tmp_path_factory.mktemp("compression-server"),
                       arguments=("--config", settings)) as running:
        yield running.wait_ready()


@pytest.fixture
def connection(served):
    with raw_http.Connection(served.ports["http"]) as made:
        yield made


def packed(path, body, encoding, headers=()):
    return raw_http.post(path, PACK[encoding](body), [("Content-Encoding", encoding), *headers])


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
@pytest.mark.parametrize("flavour", ["http", "http-aio", "http-json"])
def test_tritonclient_both_ways(served, flavour, algorithm):
    client = clients.Client(flavour.removesuffix("-json"), served.address("http"), flavour.endswith("-json"))
    for rows in (1, 400, 100_000):  # on the loop; both ways; by jobs
        values = numpy.arange(rows * 4, dtype=numpy.float32).reshape(1, -1) if flavour != "http-json" or rows < 1000 \
            else numpy.arange(rows, dtype=numpy.float32).reshape(1, -1)
        found = client.infer("floats", {"IN": values}, request_compression_algorithm=algorithm,
                             response_compression_algorithm=algorithm)
        assert found.arrays["OUT"].tobytes() == values.tobytes()
    client.close()


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_binary_tensors_stand_in_the_expanded_body(served, connection, encoding):
    values = numpy.arange(5000, dtype=numpy.float32)
    head = json.dumps({"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 5000],
                                   "parameters": {"binary_data_size": values.nbytes}}],
                       "parameters": {"binary_data_output": True}}).encode()
    answer = connection.ask(packed("/v2/models/floats/infer", head + values.tobytes(), encoding,
                                   [("Inference-Header-Content-Length", str(len(head))),
                                    ("Accept-Encoding", encoding)]))
    assert answer.status == 200 and answer.headers["content-encoding"] == encoding
    assert answer.headers["vary"] == "Accept-Encoding"
    whole = UNPACK[encoding](answer.body)
    assert whole[int(answer.headers["inference-header-content-length"]):] == values.tobytes()
    wrong = connection.ask(packed("/v2/models/floats/infer", head + values.tobytes(), encoding,
                                  [("Inference-Header-Content-Length", str(len(head) + values.nbytes + 1))]))
    assert wrong.status == 400


@pytest.mark.parametrize("accept, encoding", [
    ("gzip", "gzip"), ("deflate", "deflate"), ("gzip;q=0.2, deflate;q=0.3", "deflate"), ("br", None), ("", None),
    ("identity, gzip;q=0.9", None), ("gzip;q=0", None), ("*", "gzip"), ("identity;q=0, br", None)])
def test_the_answer_has_the_encoding_with_the_highest_weight(connection, accept, encoding):
    body = raw_http.infer_body([("IN", "FP32", [1, 1000], [0.5] * 1000)])
    answer = connection.ask(raw_http.post("/v2/models/floats/infer", body, [("Accept-Encoding", accept)]))
    assert answer.status == 200 and answer.headers.get("content-encoding") == encoding
    text = UNPACK[encoding](answer.body) if encoding else answer.body
    assert json.loads(text)["outputs"][0]["data"] == [0.5] * 1000


def test_small_answers_are_not_compressed(connection):
    answer = connection.ask(raw_http.post(INFER, PAIR, [("Accept-Encoding", "gzip")]))
    assert answer.status == 200 and "content-encoding" not in answer.headers


@pytest.mark.parametrize("encoding, status", [("br", 415), ("gzip, deflate", 415), ("gzip, identity", 415),
                                              ("identity", 200), ("IDENTITY", 200)])
def test_only_one_known_encoding(connection, encoding, status):
    answer = connection.ask(raw_http.post(INFER, PAIR, [("Content-Encoding", encoding)]))
    assert answer.status == status
    if status == 415:
        assert "Content-Encoding" in answer.json()["error"] and "gzip" in answer.headers["accept-encoding"]


def test_an_encoding_that_stands_twice_is_invalid(connection):
    headers = [("Content-Encoding", "gzip"), ("Content-Encoding", "gzip")]
    assert connection.ask(raw_http.post(INFER, PACK["gzip"](PAIR), headers)).status == 400


@pytest.mark.parametrize("body", [b"", PAIR, PACK["gzip"](PAIR)[:-3], PACK["gzip"](PAIR) + b"x",
                                  PACK["deflate"](PAIR), PACK["gzip"](PAIR)[:20] + bytes(30)])
def test_what_is_no_gzip_is_invalid(served, body):
    answer = served.request(INFER, method="POST", body=body, headers={"Content-Encoding": "gzip"})
    assert answer.status == 400 and "gzip" in answer.json()["error"], answer.body


def test_a_bomb_costs_at_most_the_limit_and_nothing_after(served):  # server#8764
    bomb = gzip.compress(bytes(500 << 20))
    assert len(bomb) < 600_000
    before = served.rss_mib()
    for _ in range(5):
        answer = served.request(INFER, method="POST", body=bomb, headers={"Content-Encoding": "gzip"})
        assert answer.status == 413 and "limits.body" in answer.json()["error"]
    assert served.peak_rss_mib() - before < BODY_MIB
    assert served.rss_mib() - before < BODY_MIB / 2
    assert served.infer("simple", PAIR).status == 200
    assert served.metric("baton_requests_total", model="simple", end_reason="ok") >= 1


def test_bodies_of_exactly_the_limit_pass(served):
    text = PAIR + b" " * ((BODY_MIB << 20) - len(PAIR))
    for extra, status in ((b"", 200), (b" ", 413)):
        answer = served.request(INFER, method="POST", body=gzip.compress(text + extra),
                                headers={"Content-Encoding": "gzip"})
        assert answer.status == status


def test_a_chunked_body_may_be_compressed(served, connection):
    body = PACK["gzip"](PAIR)
    pieces = [body[:7], body[7:]]
    answer = connection.ask(raw_http.chunked(INFER, pieces, [("Content-Encoding", "gzip")]))
    assert answer.status == 200
