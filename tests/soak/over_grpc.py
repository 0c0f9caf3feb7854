"""Kinds of traffic over gRPC."""

import asyncio

import grpc
import numpy
from tritonclient.grpc import service_pb2 as pb

import mlp
from kinds import DEADLINES, STATUS, Refused, kind

CODES = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 413: "RESOURCE_EXHAUSTED", 501: "UNIMPLEMENTED",
         503: "UNAVAILABLE"}
INFER = "/inference.GRPCInferenceService/ModelInfer"
WIDTH_S = 20  # of a call that nothing else bounds


def request(model, tensors, **parameters):
    """A ModelInferRequest of raw contents: {name: (datatype, array)}."""
    made = pb.ModelInferRequest(model_name=model)
    for name, (datatype, array) in tensors.items():
        made.inputs.add(name=name, datatype=datatype, shape=array.shape)
        made.raw_input_contents.append(array.tobytes())
    for name, value in parameters.items():
        field = "bool_param" if isinstance(value, bool) else "int64_param"
        setattr(made.parameters[name], field, value)
    return made


def refused(error):
    """The refusal of a call, by its documented reason; anything else is the error itself."""
    reason = dict(error.trailing_metadata() or ()).get("baton-reason")
    code = error.code().name
    if reason in DEADLINES and code == "DEADLINE_EXCEEDED" or code == CODES.get(STATUS.get(reason)):
        return Refused(reason)
    return error


async def call(awaitable):
    try:
        return await awaitable
    except grpc.aio.AioRpcError as error:
        raise refused(error) from error


def array_of(answer, index, datatype):
    return numpy.frombuffer(answer.raw_output_contents[index], datatype).reshape(answer.outputs[index].shape)


def pair(soak):
    return [soak.numbers.integers(-1000, 1000, (1, 16), numpy.int32) for _ in range(2)]


def pair_request(first, second):
    return request("simple", {"INPUT0": ("INT32", first), "INPUT1": ("INT32", second)})


def check_pair(answer, first, second):
    found = {output.name: array_of(answer, index, "<i4") for index, output in enumerate(answer.outputs)}
    assert (found["OUTPUT0"] == first + second).all() and (found["OUTPUT1"] == first - second).all()


@kind(12)
async def grpc_add(soak):
    first, second = pair(soak)
    check_pair(await call(soak.stub.ModelInfer(pair_request(first, second), timeout=WIDTH_S)), first, second)


@kind(3)
async def grpc_typed_contents(soak):
    first, second = pair(soak)
    made = pair_request(first, second)
    del made.raw_input_contents[:]
    for tensor, array in zip(made.inputs, (first, second)):
        tensor.contents.int_contents.extend(array.ravel().tolist())
    check_pair(await call(soak.stub.ModelInfer(made, timeout=WIDTH_S)), first, second)


@kind(3)
async def grpc_perceptron(soak):
    row = int(soak.numbers.integers(len(soak.expected.rows)))
    made = request("mlp", {mlp.INPUT: ("FP32", soak.expected.rows[row:row + 1])})
    answer = await call(soak.stub.ModelInfer(made, timeout=WIDTH_S))
    numpy.testing.assert_allclose(array_of(answer, 0, "<f4")[0], soak.expected.answers[row], rtol=1e-3, atol=1e-3)


def slow_request(**parameters):
    return request("slow", {"X": ("FP32", numpy.full((1, 4), 2, "<f4"))}, **parameters)


@kind(2, *DEADLINES, must=True)
async def grpc_deadlines(soak):
    """Half by the parameter, which the server alone knows of; half by the call's own, which the client watches too."""
    limit_us = int(soak.numbers.integers(5_000, 200_000))
    own = soak.numbers.random() < 0.5
    late = []

    async def one():
        made = slow_request() if own else slow_request(timeout=limit_us)
        try:
            answer = await soak.stub.ModelInfer(made, timeout=limit_us / 1e6 if own else WIDTH_S)
            assert (array_of(answer, 0, "<f4") == 2).all()
        except grpc.aio.AioRpcError as error:
            if own and error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                return
            late.append(refused(error))
    await asyncio.gather(*(one() for _ in range(5)))
    if late:
        raise late[0]


@kind(3)
async def grpc_cancelled(soak):
    calls = [asyncio.ensure_future(soak.stub.ModelInfer(slow_request(), timeout=WIDTH_S)) for _ in range(3)]
    await asyncio.sleep(float(soak.numbers.random()) * 0.04)
    for made in calls:
        made.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


@kind(2)
async def grpc_stream(soak):
    """Answers in order, an error in between ends its request alone."""
    pairs = [pair(soak) for _ in range(12)]

    async def requests():
        for number, each in enumerate(pairs):
            made = pair_request(*each)
            made.id = str(number)
            if number == 5:
                made.model_name = "nothing"
            yield made
    number = 0
    async for answer in soak.stub.ModelStreamInfer(requests(), timeout=WIDTH_S):
        if number == 5:
            assert "nothing" in answer.error_message
        else:
            assert not answer.error_message, answer.error_message
            assert answer.infer_response.id == str(number)
            check_pair(answer.infer_response, *pairs[number])
        number += 1
    assert number == len(pairs)


@kind(1)
async def grpc_stream_that_is_given_up(soak):
    async def requests():
        for _ in range(20):
            yield slow_request()
    stream = soak.stub.ModelStreamInfer(requests(), timeout=WIDTH_S)
    if soak.numbers.random() < 0.5:
        assert not (await stream.read()).error_message
    else:
        await asyncio.sleep(float(soak.numbers.random()) * 0.03)
    stream.cancel()


@kind(1)
async def grpc_sequences(soak):
    """All steps of a sequence at once over a stream."""
    sequence, values = next(soak.ids), [int(number) for number in soak.numbers.integers(0, 1000, 8)]
    model = soak.choose(("direct", "oldest"))

    async def requests():
        for index, value in enumerate(values):
            yield request(model, {"INPUT": ("INT32", numpy.full((1, 1), value, "<i4"))}, sequence_id=sequence,
                          sequence_start=index == 0, sequence_end=index == len(values) - 1)
    sums = []
    async for answer in soak.stub.ModelStreamInfer(requests(), timeout=WIDTH_S):
        assert not answer.error_message, answer.error_message
        names = [output.name for output in answer.infer_response.outputs]
        sums.append(int(array_of(answer.infer_response, names.index("OUTPUT"), "<i4")[0, 0]))
    assert sums == numpy.cumsum(values).tolist()


def wrong_requests():
    ones = numpy.ones((1, 16), numpy.int32)
    good = pair_request(ones, ones)

    def changed(change):
        made = pb.ModelInferRequest()
        made.CopyFrom(good)
        change(made)
        return made.SerializeToString()
    return {
        "garbage": b"\xff" * 40, "cut": good.SerializeToString()[:-3],
        "raw too short": changed(lambda made: made.raw_input_contents.__setitem__(0, b"123")),
        "raw missing": changed(lambda made: made.raw_input_contents.pop()),
        "both": changed(lambda made: made.inputs[0].contents.int_contents.append(1)),
        "no inputs": changed(lambda made: made.ClearField("inputs")),
        "another type": changed(lambda made: setattr(made.inputs[0], "datatype", "FP32")),
        "negative shape": changed(lambda made: made.inputs[0].shape.__setitem__(0, -1)),
        "unknown output": changed(lambda made: made.outputs.add(name="OTHER")),
    }


WRONG = list(wrong_requests().items())


@kind(3, "invalid", must=True)
async def grpc_malformed(soak):
    """One good call by the same road in between."""
    raw = soak.channel.unary_unary(INFER, lambda data: data, pb.ModelInferResponse.FromString)
    if soak.numbers.random() < 0.1:
        first, second = pair(soak)
        check_pair(await call(raw(pair_request(first, second).SerializeToString(), timeout=WIDTH_S)), first, second)
        return
    name, data = soak.choose(WRONG)
    await call(raw(data, timeout=WIDTH_S))
    raise AssertionError(f"{name} was answered")


@kind(3)
async def grpc_looks(soak):
    stub = soak.stub
    call_, made = soak.choose((
        (stub.ServerReady, pb.ServerReadyRequest()), (stub.ServerMetadata, pb.ServerMetadataRequest()),
        (stub.ModelMetadata, pb.ModelMetadataRequest(name="mlp")),
        (stub.ModelConfig, pb.ModelConfigRequest(name="mlp")),
        (stub.ModelStatistics, pb.ModelStatisticsRequest()), (stub.RepositoryIndex, pb.RepositoryIndexRequest()),
        (stub.SystemSharedMemoryStatus, pb.SystemSharedMemoryStatusRequest())))
    await call(call_(made, timeout=WIDTH_S))


@kind(1)
async def grpc_channels_that_come_and_go(soak):
    first, second = pair(soak)
    async with soak.new_channel() as channel:
        made = channel.unary_unary(INFER, pb.ModelInferRequest.SerializeToString, pb.ModelInferResponse.FromString)
        check_pair(await call(made(pair_request(first, second), timeout=WIDTH_S)), first, second)


@kind(2, "not_found", "not_ready", must=True)
async def grpc_a_model_that_comes_and_goes(soak):
    made = request("coming", {"X": ("FP32", numpy.ones((1, 256), "<f4"))})
    answer = await call(soak.stub.ModelInfer(made, timeout=WIDTH_S))
    found = float(array_of(answer, 0, "<f4")[0, 0])
    assert any(abs(found - known) < 1e-3 * known for known in soak.coming), (found, soak.coming)
