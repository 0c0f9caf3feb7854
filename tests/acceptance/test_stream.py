"""ModelStreamInfer with both of tritonclient's gRPC flavours."""

import asyncio
import queue
import random
import time

import grpc
import numpy
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

from harness import server

COUNT = 500


def inputs(first):
    made = []
    for name, number in (("INPUT0", first), ("INPUT1", 1)):
        tensor = tritonclient.grpc.InferInput(name, [1, 16], "INT32")
        tensor.set_data_from_numpy(numpy.full((1, 16), number, numpy.int32))
        made.append(tensor)
    return made


def test_a_stream_answers_in_the_order_of_its_requests(general):
    answers = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(general.address("grpc")) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        for number in range(COUNT):
            client.async_stream_infer("unknown" if number % 50 == 7 else "simple", inputs(number),
                                      request_id=str(number), enable_empty_final_response=True)
        for number in range(COUNT):
            result, error = answers.get(timeout=20)
            if number % 50 == 7:
                assert isinstance(error, InferenceServerException) and "unknown" in str(error)
                continue
            assert error is None, error
            assert result.get_response().id == str(number)
            assert result.get_response().parameters["triton_final_response"].bool_param
            numpy.testing.assert_array_equal(result.as_numpy("OUTPUT0"), numpy.full((1, 16), number + 1))
        client.stop_stream()


def test_an_aio_stream_answers_in_the_order_of_its_requests(general):
    async def requests():
        for number in range(COUNT):
            yield {"model_name": "simple", "inputs": inputs(number), "request_id": str(number)}

    async def stream():
        async with tritonclient.grpc.aio.InferenceServerClient(general.address("grpc")) as client:
            number = 0
            async for result, error in client.stream_infer(requests()):
                assert error is None, error
                assert result.get_response().id == str(number)
                numpy.testing.assert_array_equal(result.as_numpy("OUTPUT0"), numpy.full((1, 16), number + 1))
                number += 1
            assert number == COUNT

    asyncio.run(stream())


def test_the_requests_of_a_stream_that_is_given_up_end(general):
    ended = "nv_inference_request_failure"
    before = general.metric(ended, model="simple", reason="CANCELED")
    with grpc.insecure_channel(general.address("grpc")) as channel:
        request = service_pb2.ModelInferRequest(model_name="simple")
        for tensor in inputs(1):
            request.inputs.append(tensor._get_tensor())
            request.raw_input_contents.append(tensor._get_content())
        call = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelStreamInfer(iter([request] * 200))
        next(call)
        call.cancel()
        with pytest.raises(grpc.RpcError):
            list(call)
    server.wait_for(lambda: general.metric("inference_requests_in_flight") == 0, 10, "no work in flight")
    assert general.metric(ended, model="simple", reason="CANCELED") >= before


def test_closing_a_stream_at_any_moment_breaks_nothing(general):
    # server#6576: the client closes while answers are under way
    generator = random.Random(11)
    for count in range(60):
        with tritonclient.grpc.InferenceServerClient(general.address("grpc")) as client:
            answers = queue.Queue()
            client.start_stream(lambda result, error, answers=answers: answers.put(result))
            for number in range(30):
                client.async_stream_infer("slow" if number == 20 else "simple",
                                          slow_inputs() if number == 20 else inputs(number))
            until = time.monotonic() + generator.random() * 0.03
            while time.monotonic() < until:
                try:
                    answers.get(timeout=max(until - time.monotonic(), 0.0001))
                except queue.Empty:
                    break
            client.stop_stream(cancel_requests=count % 2 == 0)
    assert general.process.poll() is None
    server.wait_for(lambda: general.metric("inference_requests_in_flight") == 0, 10, "no work in flight")
    with tritonclient.grpc.InferenceServerClient(general.address("grpc")) as client:
        assert client.infer("simple", inputs(3)).as_numpy("OUTPUT0")[0, 0] == 4


def slow_inputs():
    tensor = tritonclient.grpc.InferInput("X", [1, 4], "FP32")
    tensor.set_data_from_numpy(numpy.ones((1, 4), numpy.float32))
    return [tensor]
