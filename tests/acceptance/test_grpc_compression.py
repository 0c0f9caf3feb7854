"""Compressed gRPC messages both ways: tritonclient's algorithms, and messages that want to grow without bound."""

import asyncio
import gzip
import queue
import zlib

import grpc
import numpy
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
from tritonclient.grpc import service_pb2, service_pb2_grpc

from harness import clients, http2, models, server

MESSAGE_MIB = 8
PACK = {"gzip": gzip.compress, "deflate": zlib.compress}
UNPACK = {"gzip": gzip.decompress, "deflate": zlib.decompress}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grpc-compression")
    models.write(folder, "floats", models.identity("FP32", [-1, -1]))
    settings = folder / "baton.yaml"
    settings.write_text(f"version: 1\nlimits: {{body: {MESSAGE_MIB}MiB}}\n")
    with server.Server(folder, folder=tmp_path_factory.mktemp("grpc-compression-server"),
                       arguments=("--config", settings)) as running:
        yield running.wait_ready()


def request(values):
    made = service_pb2.ModelInferRequest(model_name="floats")
    made.inputs.add(name="IN", datatype="FP32", shape=list(values.shape))
    made.raw_input_contents.append(values.tobytes())
    return made


def by_hand(served, message, encoding, flag=1, accept="gzip,deflate"):
    """Status and messages [(flag, bytes)] of one ModelInfer, read from the frames."""
    fields = [http2.literal(b"grpc-encoding", encoding.encode()),
              http2.literal(b"grpc-accept-encoding", accept.encode())]
    with http2.Connection(served.ports["grpc"]) as connection:
        data = bytes([flag]) + len(message).to_bytes(4, "big") + message
        connection.send(http2.frame(http2.HEADERS, http2.END_HEADERS, 1, http2.head(http2.INFER, *fields))
                        + http2.frame(http2.DATA, http2.END_STREAM, 1, data))
        answer, found = connection.answer(1), []
    while answer:
        size = int.from_bytes(answer[1:5], "big")
        found.append((answer[0], answer[5:5 + size]))
        answer = answer[5 + size:]
    return found


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
@pytest.mark.parametrize("flavour", ["grpc", "grpc-aio"])
def test_tritonclient_both_ways(served, flavour, algorithm):
    client = clients.Client(flavour, served.address("grpc"))
    for rows in (1, 400, 100_000, 400_000):  # on the loop; both ways; by jobs
        values = numpy.arange(rows * 4, dtype=numpy.float32).reshape(1, -1)
        found = client.infer("floats", {"IN": values}, compression_algorithm=algorithm)
        assert found.arrays["OUT"].tobytes() == values.tobytes()
    client.close()


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_streams_of_both_flavours(served, algorithm):
    def inputs(number):
        values = numpy.full((1, 200_000 if number % 10 == 3 else 40), number, numpy.float32)
        tensor = tritonclient.grpc.InferInput("IN", list(values.shape), "FP32")
        tensor.set_data_from_numpy(values)
        return [tensor]

    answers = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(served.address("grpc")) as client:
        client.start_stream(lambda result, error: answers.put((result, error)), compression_algorithm=algorithm)
        for number in range(60):
            client.async_stream_infer("floats", inputs(number), request_id=str(number))
        for number in range(60):
            result, error = answers.get(timeout=20)
            assert error is None and result.get_response().id == str(number)
            assert (result.as_numpy("OUT") == number).all()
        client.stop_stream()

    async def requests():
        for number in range(60):
            yield {"model_name": "floats", "inputs": inputs(number), "request_id": str(number)}

    async def stream():
        async with tritonclient.grpc.aio.InferenceServerClient(served.address("grpc")) as client:
            number = 0
            async for result, error in client.stream_infer(requests(), compression_algorithm=algorithm):
                assert error is None and result.get_response().id == str(number)
                assert (result.as_numpy("OUT") == number).all()
                number += 1
            assert number == 60
    asyncio.run(stream())


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_the_answer_is_compressed_as_the_request_where_that_is_accepted(served, encoding):
    message = PACK[encoding](request(numpy.zeros((1, 1000), numpy.float32)).SerializeToString())
    (flag, answer), = by_hand(served, message, encoding)
    assert flag == 1 and len(answer) < 1000
    whole = service_pb2.ModelInferResponse.FromString(UNPACK[encoding](answer))
    assert whole.raw_output_contents[0] == bytes(4000)
    (flag, answer), = by_hand(served, message, encoding, accept="identity")
    assert flag == 0 and service_pb2.ModelInferResponse.FromString(answer).raw_output_contents[0] == bytes(4000)
    small = PACK[encoding](request(numpy.zeros((1, 10), numpy.float32)).SerializeToString())
    (flag, _), = by_hand(served, small, encoding)
    assert flag == 0


def test_a_message_may_be_left_as_it_is(served):
    (flag, _), = by_hand(served, request(numpy.zeros((1, 10), numpy.float32)).SerializeToString(), "gzip", flag=0)
    assert flag == 0


def raw_call(served, message, metadata=(), compression=None):
    """The status of a ModelInfer with these bytes."""
    with grpc.insecure_channel(served.address("grpc"), [("grpc.max_send_message_length", -1)]) as channel:
        call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer",
                                   request_serializer=lambda text: text, response_deserializer=lambda text: text)
        with pytest.raises(grpc.RpcError) as error:
            call(message, timeout=30, compression=compression, metadata=metadata)
        return error.value


def end_reasons(served):
    return {reason: served.metric("baton_refused_total", end_reason=reason)
            for reason in ("ok", "invalid", "unsupported", "too_large")}


def reason_by_hand(served, message, encoding):
    """How the server counts a call that gets no message."""
    before = end_reasons(served)
    assert by_hand(served, message, encoding) == []
    after = end_reasons(served)
    return [reason for reason in after if after[reason] > before[reason]]


@pytest.mark.parametrize("encoding", ["br", "zstd", "GZIP", "gzip, deflate", "x" * 100])
def test_an_unknown_encoding_is_unimplemented(served, encoding):
    assert reason_by_hand(served, b"a", encoding) == ["unsupported"]


def test_a_bomb_costs_at_most_the_limit(served):
    bomb = request(numpy.zeros((1, 64 << 20), numpy.float32)).SerializeToString()

    def peak():
        lines = open(f"/proc/{served.process.pid}/status").read().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    before = served.rss_mib()
    for algorithm in (grpc.Compression.Gzip, grpc.Compression.Deflate):
        error = raw_call(served, bomb, compression=algorithm)
        assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, error
        assert str(MESSAGE_MIB << 20) in error.details()
    assert peak() - before < 2 * MESSAGE_MIB
    assert served.rss_mib() - before < MESSAGE_MIB
    with grpc.insecure_channel(served.address("grpc")) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        values = numpy.zeros((1, 4), numpy.float32)
        assert stub.ModelInfer(request(values), timeout=10).raw_output_contents[0] == values.tobytes()


@pytest.mark.parametrize("spoil", [lambda text: text[:-3], lambda text: text + b"x", lambda text: b"{}",
                                   lambda text: zlib.compress(b"a"), lambda text: b""])
def test_what_is_no_gzip_is_invalid(served, spoil):
    packed = spoil(gzip.compress(request(numpy.zeros((1, 4), numpy.float32)).SerializeToString()))
    assert reason_by_hand(served, packed, "gzip") == ["invalid"]


def test_a_marked_message_without_an_encoding_is_invalid(served):
    assert reason_by_hand(served, b"abc", "identity") == ["invalid"]
