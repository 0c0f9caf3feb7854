"""Kinds of traffic over REST."""

import asyncio
import contextlib
import gzip
import json
import os
import zlib

import numpy

import mlp
from harness import malformed, raw_http
from kinds import DEADLINES, Refused, kind
from wire import ANSWER_S, read

MALFORMED = list(malformed.connections().items())
PACK = {"gzip": (gzip.compress, gzip.decompress), "deflate": (zlib.compress, zlib.decompress)}
BOMB = gzip.compress(bytes(64 << 20))
LOOKS = ("/v2", "/v2/health/ready", "/v2/health/live", "/livez", "/readyz",
         "/v2/models/simple", "/v2/models/simple/config", "/v2/models/simple/ready", "/v2/models/stats",
         "/v2/models/mlp/stats", "/v2/logging",
         "/v2/systemsharedmemory/status")


def infer(model):
    return f"/v2/models/{model}/infer"


def binary(model, tensors, headers=(), encoding=None, **parameters):
    """A request of binary tensors: {name: (datatype, array)}."""
    inputs = [{"name": name, "datatype": datatype, "shape": list(array.shape),
               "parameters": {"binary_data_size": array.nbytes}} for name, (datatype, array) in tensors.items()]
    head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True, **parameters}}).encode()
    body = head + b"".join(array.tobytes() for _, array in tensors.values())
    headers = [("Inference-Header-Content-Length", len(head)), *headers]
    if encoding:
        body = PACK[encoding][0](body)
        headers += [("Content-Encoding", encoding), ("Accept-Encoding", encoding)]
    return raw_http.post(infer(model), body, headers)


def outputs(reply, types):
    """{name: array} of an answer of binary tensors."""
    body = reply.body
    if "content-encoding" in reply.headers:
        body = PACK[reply.headers["content-encoding"]][1](body)
    length = int(reply.headers["inference-header-content-length"])
    found, at = {}, length
    for item in json.loads(body[:length])["outputs"]:
        size = item["parameters"]["binary_data_size"]
        found[item["name"]] = numpy.frombuffer(body[at:at + size], types[item["name"]]).reshape(item["shape"])
        at += size
    assert at == len(body)
    return found


def pair(soak, rows=1):
    return [soak.numbers.integers(-1000, 1000, (rows, 16), numpy.int32) for _ in range(2)]


def pair_body(first, second):
    return raw_http.infer_body([(name, "INT32", list(array.shape), array.ravel().tolist())
                                for name, array in (("INPUT0", first), ("INPUT1", second))])


def check_pair(reply, first, second):
    found = {item["name"]: item["data"] for item in reply.good().json()["outputs"]}
    assert found == {"OUTPUT0": (first + second).ravel().tolist(), "OUTPUT1": (first - second).ravel().tolist()}


@kind(10)
async def json_add(soak):
    first, second = pair(soak, int(soak.numbers.integers(1, 5)))
    check_pair(await soak.http.ask(raw_http.post(infer("simple"), pair_body(first, second))), first, second)


@kind(12)
async def binary_add(soak):
    first, second = pair(soak)
    reply = await soak.http.ask(binary("simple", {"INPUT0": ("INT32", first), "INPUT1": ("INT32", second)}))
    found = outputs(reply.good(), {"OUTPUT0": "<i4", "OUTPUT1": "<i4"})
    assert (found["OUTPUT0"] == first + second).all() and (found["OUTPUT1"] == first - second).all()


@kind(4)
async def compressed(soak):
    values = soak.numbers.integers(0, 9, (1, int(soak.numbers.integers(1, 40_000)))).astype("<f4")
    encoding = soak.choose(("gzip", "deflate"))
    reply = await soak.http.ask(binary("floats", {"IN": ("FP32", values)}, encoding=encoding))
    assert outputs(reply.good(), {"OUT": "<f4"})["OUT"].tobytes() == values.tobytes()


@kind(5)
async def perceptron(soak):
    row = int(soak.numbers.integers(len(soak.expected.rows)))
    reply = await soak.http.ask(binary("mlp", {mlp.INPUT: ("FP32", soak.expected.rows[row:row + 1])}))
    found = outputs(reply.good(), {mlp.OUTPUT: "<f4"})[mlp.OUTPUT]
    numpy.testing.assert_allclose(found[0], soak.expected.answers[row], rtol=1e-3, atol=1e-3)


@kind(4)
async def texts(soak):
    values = [soak.choose(("", "a", "käse", "x" * 3000)) for _ in range(int(soak.numbers.integers(1, 20)))]
    reply = await soak.http.ask(raw_http.post(infer("texts"), raw_http.infer_body(
        [("IN", "BYTES", [1, len(values)], values)])))
    assert reply.good().json()["outputs"][0]["data"] == values


@kind(3)
async def pipelined(soak):
    pairs = [pair(soak) for _ in range(5)]
    replies = await soak.http.ask(*(raw_http.post(infer("simple"), pair_body(*each)) for each in pairs))
    for reply, each in zip(replies, pairs):
        check_pair(reply, *each)


@kind(3)
async def chunked(soak):
    first, second = pair(soak)
    body = pair_body(first, second)
    cut = int(soak.numbers.integers(1, len(body) - 1))
    check_pair(await soak.http.ask(raw_http.chunked(infer("simple"), [body[:cut], body[cut:]])), first, second)


def slow_request(value=1.0, headers=()):
    return raw_http.post(infer("slow"), raw_http.infer_body([("X", "FP32", [1, 4], [value] * 4)]), headers)


@kind(3, *DEADLINES, must=True)
async def deadlines(soak):
    """Six at once for a model that takes two at a time."""
    request = slow_request(2.0, [("X-Request-Timeout-Ms", int(soak.numbers.integers(5, 200)))])
    late = []
    for reply in await asyncio.gather(*(soak.http.ask(request) for _ in range(6))):
        try:
            assert reply.good().json()["outputs"][0]["data"] == [2.0] * 4
        except Refused as refused:
            late.append(refused)
    if late:
        raise late[0]


@kind(4)
async def leaves_while_it_waits(soak):
    held = await asyncio.gather(*(soak.http.open() for _ in range(3)))
    for _, writer in held:
        writer.write(slow_request())
    await asyncio.sleep(float(soak.numbers.random()) * 0.04)
    for _, writer in held:
        writer.close()


@kind(3)
async def leaves_while_it_sends(soak):
    _, writer = await soak.http.open()
    request = binary("simple", {name: ("INT32", numpy.zeros((1, 16), "<i4")) for name in ("INPUT0", "INPUT1")})
    writer.write(request[:int(soak.numbers.integers(1, len(request)))])
    await asyncio.sleep(float(soak.numbers.random()) * 0.01)
    writer.close()


@kind(1)
async def leaves_while_it_is_answered(soak):
    reader, writer = await soak.http.open()
    writer.write(binary("floats", {"IN": ("FP32", numpy.zeros((1, 500_000), "<f4"))}))
    await reader.read(1000)
    writer.transport.abort()


@kind(8)
async def malformed_requests(soak):
    """Closes behind them: nothing that follows may be answered as if it were one."""
    name, (data, statuses) = soak.choose(MALFORMED)
    reader, writer = await soak.http.open()
    try:
        writer.write(data)
        async with asyncio.timeout(ANSWER_S):
            reply = await read(reader)
        assert reply.status in statuses and reply.json()["error"], (name, reply.status, reply.body[:200])
    finally:
        writer.close()


@kind(0.2, "too_large", must=True)
async def bombs(soak):
    """In turn with bodies of the same size that are within the limit."""
    if soak.numbers.random() < 0.5:
        first, second = pair(soak)
        body = gzip.compress(pair_body(first, second) + b" " * (4 << 20))
        check_pair(await soak.http.ask(raw_http.post(infer("simple"), body, [("Content-Encoding", "gzip")])),
                   first, second)
        return
    (await soak.http.ask(raw_http.post(infer("simple"), BOMB, [("Content-Encoding", "gzip")]))).good()


@kind(5)
async def looks(soak):
    (await soak.http.ask(raw_http.get(soak.choose(LOOKS)))).good()


@kind(1)
async def scrapes(soak):
    accept = soak.choose(("text/plain", "application/openmetrics-text; version=1.0.0"))
    reply = await soak.metrics.ask(f"GET /metrics HTTP/1.1\r\nHost: t\r\nAccept: {accept}\r\n\r\n".encode())
    assert b"nv_inference_count" in reply.good().body


def step_body(value, sequence, start, end):
    return raw_http.infer_body([("INPUT", "INT32", [1, 1], [value])], parameters={
        "sequence_id": sequence, "sequence_start": start, "sequence_end": end})


async def step(soak, model, value, sequence, start=False, end=False):
    reply = await soak.http.ask(raw_http.post(infer(model), step_body(value, sequence, start, end)))
    return next(item["data"][0] for item in reply.good().json()["outputs"] if item["name"] == "OUTPUT")


@kind(4)
async def sequences(soak):
    model, sequence, total = soak.choose(("direct", "oldest")), next(soak.ids), 0
    for index in range(6):
        value = int(soak.numbers.integers(1000))
        total += value
        assert await step(soak, model, value, sequence, index == 0, index == 5) == total


@kind(0.5, "invalid", must=True)
async def sequences_that_are_given_up(soak):
    """Half of them ask again, to be told that they have ended."""
    model, sequence = soak.choose(("direct", "oldest")), next(soak.ids)
    assert await step(soak, model, 7, sequence, start=True) == 7
    if soak.numbers.random() < 0.5:
        await asyncio.sleep(soak.idle_s + 1)
        await step(soak, model, 1, sequence)
        raise AssertionError("an idle sequence goes on")


@kind(2, "invalid", must=True)
async def shared_memory(soak):
    """Some of the regions are cut off before they are used."""
    name = f"baton-soak-{os.getpid()}-{next(soak.ids)}"
    path = f"/dev/shm/{name}"
    first, second = pair(soak)
    with open(path, "wb") as file:
        file.write(first.tobytes() + second.tobytes() + bytes(128))
    region = f"/v2/systemsharedmemory/region/{name}"
    try:
        (await soak.http.ask(raw_http.post(f"{region}/register", json.dumps(
            {"key": name, "offset": 0, "byte_size": 256}).encode()))).good()
        if cut := soak.numbers.random() < 0.2:
            os.truncate(path, 100)
        places = [{"shared_memory_region": name, "shared_memory_byte_size": 64, "shared_memory_offset": 64 * index}
                  for index in range(4)]
        body = {"inputs": [{"name": f"INPUT{index}", "datatype": "INT32", "shape": [1, 16],
                            "parameters": places[index]} for index in range(2)],
                "outputs": [{"name": f"OUTPUT{index}", "parameters": places[2 + index]} for index in range(2)]}
        (await soak.http.ask(raw_http.post(infer("simple"), json.dumps(body).encode()))).good()
        assert not cut, "a region that is too short was read"
        with open(path, "rb") as file:
            found = numpy.frombuffer(file.read(), "<i4")[32:].reshape(2, 16)
        assert (found == [(first + second)[0], (first - second)[0]]).all()
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        (await soak.http.ask(raw_http.post(f"{region}/unregister", b""))).good()


async def ask_floats(soak, model, value):
    body = raw_http.infer_body([("X", "FP32", [1, 4], [value] * 4)])
    return (await soak.http.ask(raw_http.post(infer(model), body))).good().json()["outputs"][0]["data"]


@kind(4)
async def a_model_that_is_reloaded(soak):
    """Its factor changes with each reload; it always answers."""
    value = float(soak.numbers.integers(1, 100))
    found = await ask_floats(soak, "reloaded", value)
    assert found in [[value * factor] * 4 for factor in soak.factors], (value, found)


@kind(4)
async def a_model_whose_instances_change(soak):
    value = float(soak.numbers.integers(100))
    assert await ask_floats(soak, "scaled", value) == [value * 2 + 1] * 4


@kind(4, "not_found", "not_ready", must=True)
async def a_model_that_comes_and_goes(soak):
    body = raw_http.infer_body([("X", "FP32", [1, 256], [1.0] * 256)])
    reply = (await soak.http.ask(raw_http.post(infer("coming"), body))).good()
    found = reply.json()["outputs"][0]["data"][0]
    assert any(abs(found - known) < 1e-3 * known for known in soak.coming), (found, soak.coming)
