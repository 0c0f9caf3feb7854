"""gRPC below tritonclient: typed contents, rules of mixing, the health service, statuses, large messages."""

import json

import grpc
import numpy
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from harness import models

TYPED = {  # datatype: (field of InferTensorContents, values)
    "BOOL": ("bool_contents", [True, False, True]), "INT8": ("int_contents", [-128, 0, 127]),
    "INT16": ("int_contents", [-32768, 0, 32767]), "INT32": ("int_contents", [-(2**31), 0, 2**31 - 1]),
    "INT64": ("int64_contents", [-(2**63), 9007199254740993, 2**63 - 1]), "UINT8": ("uint_contents", [0, 1, 255]),
    "UINT16": ("uint_contents", [0, 1, 65535]), "UINT32": ("uint_contents", [0, 1, 2**32 - 1]),
    "UINT64": ("uint64_contents", [0, 2**53 + 1, 2**64 - 1]), "FP32": ("fp32_contents", [0.5, -0.0, 1e-45]),
    "FP64": ("fp64_contents", [0.1, -0.0, 5e-324]), "BYTES": ("bytes_contents", [b"a", b"", b"\xff\x00"]),
}
KINDS = {"BOOL": "?", "INT8": "i1", "INT16": "<i2", "INT32": "<i4", "INT64": "<i8", "UINT8": "u1", "UINT16": "<u2",
         "UINT32": "<u4", "UINT64": "<u8", "FP32": "<f4", "FP64": "<f8"}


@pytest.fixture(scope="module")
def channel(general):
    if "grpc" not in general.ports:
        pytest.skip('gRPC is not served yet: the ports file has no "grpc" key')
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(general.address("grpc"), options) as made:
        yield made


@pytest.fixture(scope="module")
def stub(channel):
    return service_pb2_grpc.GRPCInferenceServiceStub(channel)


def make(model, *inputs, raw=(), outputs=(), **more):
    request = service_pb2.ModelInferRequest(model_name=model, raw_input_contents=raw, **more)
    for name, datatype, shape, field, values in inputs:
        item = request.inputs.add(name=name, datatype=datatype, shape=shape)
        if field:
            getattr(item.contents, field).extend(values)
    for name in outputs:
        request.outputs.add(name=name)
    return request


def pair(raw=(), typed=("INPUT0", "INPUT1")):
    return make("simple", *[(name, "INT32", [1, 16], "int_contents" if name in typed else None, [1] * 16)
                            for name in ("INPUT0", "INPUT1")], raw=raw)


def refused(stub, request, timeout=10):
    with pytest.raises(grpc.RpcError) as error:
        stub.ModelInfer(request, timeout=timeout)
    return error.value.code(), error.value.details(), error.value


def test_health_and_metadata(stub):
    assert stub.ServerLive(service_pb2.ServerLiveRequest()).live
    assert stub.ServerReady(service_pb2.ServerReadyRequest()).ready
    assert stub.ModelReady(service_pb2.ModelReadyRequest(name="simple")).ready
    assert stub.ServerMetadata(service_pb2.ServerMetadataRequest()).name == "baton"


def test_metadata_and_config_are_the_same_over_both_protocols(stub, general):
    found = stub.ModelMetadata(service_pb2.ModelMetadataRequest(name="simple"))
    other = general.get("/v2/models/simple").json()
    assert [(item.name, item.datatype, list(item.shape)) for item in found.inputs] == [
        (item["name"], item["datatype"], item["shape"]) for item in other["inputs"]]
    config = stub.ModelConfig(service_pb2.ModelConfigRequest(name="simple")).config
    assert config.max_batch_size == general.get("/v2/models/simple/config").json()["max_batch_size"]


@pytest.mark.parametrize("service, expected", [("", 1), ("inference.GRPCInferenceService", 1), ("nothing", None)])
def test_the_health_service(channel, service, expected):
    check = channel.unary_unary("/grpc.health.v1.Health/Check", request_serializer=lambda text: text,
                                response_deserializer=lambda data: data)
    request = b"\x0a" + bytes([len(service)]) + service.encode() if service else b""
    if expected is None:
        with pytest.raises(grpc.RpcError) as error:
            check(request, timeout=5)
        assert error.value.code() == grpc.StatusCode.NOT_FOUND
    else:
        assert check(request, timeout=5) == bytes([8, expected])


@pytest.mark.parametrize("datatype", TYPED)
def test_typed_contents_of_each_datatype(stub, datatype):
    field, values = TYPED[datatype]
    answer = stub.ModelInfer(make(f"identity_{datatype.lower()}", ("IN", datatype, [1, 3], field, values)), timeout=10)
    raw = answer.raw_output_contents[0]
    if datatype == "BYTES":
        assert raw == b"".join(len(item).to_bytes(4, "little") + item for item in values)
    else:
        assert raw == numpy.array(values, KINDS[datatype]).tobytes()


@pytest.mark.parametrize("datatype", ["FP16", "BF16"])
def test_half_floats_are_raw_only(stub, datatype):
    # U145
    name = f"identity_{datatype.lower()}"
    raw = bytes.fromhex("0100803f7f7f")
    answer = stub.ModelInfer(make(name, ("IN", datatype, [1, 3], None, ()), raw=[raw]), timeout=10)
    assert answer.raw_output_contents[0] == raw
    code, text, _ = refused(stub, make(name, ("IN", datatype, [1, 3], "fp32_contents", [1.0, 2.0, 3.0])))
    assert code == grpc.StatusCode.INVALID_ARGUMENT and datatype in text


@pytest.mark.parametrize("raw, typed", [([bytes(64)] * 2, ("INPUT0",)), ([bytes(64)] * 2, ("INPUT0", "INPUT1")),
                                        ([bytes(64)], ("INPUT0",)), ([bytes(64)], ()), ([bytes(64)] * 3, ()),
                                        ([bytes(63), bytes(64)], ()), ([b"", b""], ()), ([], ("INPUT0",)), ([], ())])
def test_raw_and_typed_contents_are_not_mixed_and_complete(stub, raw, typed):
    # U145
    code, text, _ = refused(stub, pair(raw, typed))
    assert code == grpc.StatusCode.INVALID_ARGUMENT and text


@pytest.mark.parametrize("change", [
    lambda request: request.inputs[0].contents.fp32_contents.append(1.0),
    lambda request: request.inputs[0].contents.int_contents.append(1),
    lambda request: request.inputs[0].shape.append(1),
    lambda request: request.inputs[0].shape.__setitem__(0, -1),
    lambda request: request.inputs[0].shape.__setitem__(0, 2**62),
    lambda request: setattr(request.inputs[0], "datatype", "INT31"),
    lambda request: setattr(request.inputs[0], "datatype", ""),
    lambda request: setattr(request.inputs[0], "name", ""),
    lambda request: setattr(request.inputs[0], "name", "INPUT1"),
    lambda request: request.inputs.add(name="INPUT2", datatype="INT32", shape=[1, 16]),
    lambda request: request.inputs.pop(),
    lambda request: setattr(request, "model_version", "x"),
    lambda request: setattr(request, "model_version", "-1"),
    lambda request: request.outputs.add(name="NOTHING"),
    lambda request: request.parameters["timeout"].__setattr__("int64_param", -1),
    lambda request: request.parameters["timeout"].__setattr__("string_param", "1"),
    lambda request: request.parameters["priority"].__setattr__("uint64_param", 2**40),
    lambda request: request.parameters["triton_x"].__setattr__("bool_param", True),
    lambda request: request.inputs[0].ClearField("contents"),
], ids=str)
def test_a_bad_request_is_invalid(stub, change):
    request = pair()
    change(request)
    code, text, _ = refused(stub, request)
    assert code == grpc.StatusCode.INVALID_ARGUMENT and text, (code, text)


def test_what_is_not_offered_has_one_code_over_both_protocols(stub, general):
    request = pair()
    for item in request.inputs:
        item.ClearField("contents")
        item.parameters["shared_memory_region"].string_param = "x"
        item.parameters["shared_memory_byte_size"].int64_param = 64
    request.ClearField("raw_input_contents")
    _, _, error = refused(stub, request)
    place = {"shared_memory_region": "x", "shared_memory_byte_size": 64}
    inputs = [{"name": name, "datatype": "INT32", "shape": [1, 16], "parameters": place}
              for name in ("INPUT0", "INPUT1")]
    over_rest = json.loads(general.infer("simple", {"inputs": inputs}).body)["reason"]
    assert dict(error.trailing_metadata())["baton-reason"] == over_rest == "unsupported"


def test_values_beyond_a_small_type_are_invalid(stub):
    for datatype, field, value in (("INT8", "int_contents", 128), ("UINT8", "uint_contents", 256),
                                   ("INT16", "int_contents", -32769), ("UINT16", "uint_contents", 65536)):
        code, text, _ = refused(stub, make(f"identity_{datatype.lower()}", ("IN", datatype, [1, 1], field, [value])))
        assert code == grpc.StatusCode.INVALID_ARGUMENT and "IN" in text


def test_a_refusal_carries_its_reason(stub):
    code, _, error = refused(stub, make("nothing", ("IN", "FP32", [1], "fp32_contents", [1.0])))
    assert code == grpc.StatusCode.NOT_FOUND
    assert dict(error.trailing_metadata())["baton-reason"] == "not_found"


def test_bytes_that_are_no_message_are_refused(channel, stub):
    send = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer", request_serializer=lambda data: data,
                               response_deserializer=lambda data: data)
    for data in (b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x10abc", bytes(50)):
        with pytest.raises(grpc.RpcError) as error:
            send(data, timeout=10)
        assert error.value.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL)
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT, "a client's mistake is never INTERNAL"
    assert stub.ServerLive(service_pb2.ServerLiveRequest()).live


def test_a_33_mb_tensor_passes_both_ways(stub):
    # server#1776, server#4972
    numbers = numpy.arange(8_400_000, dtype="<f4")
    request = make("identity_fp32", ("IN", "FP32", [1, numbers.size], None, ()), raw=[numbers.tobytes()])
    assert stub.ModelInfer(request, timeout=60).raw_output_contents[0] == numbers.tobytes()


def test_a_message_beyond_the_limit_is_resource_exhausted(stub):
    request = make("identity_fp32", ("IN", "FP32", [1, 18_000_000], None, ()), raw=[bytes(72_000_000)])
    code, text, _ = refused(stub, request, 60)
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED and text
    assert stub.ServerLive(service_pb2.ServerLiveRequest()).live


def test_requested_outputs_and_ids(stub):
    request = pair()
    request.id = "my-id"
    request.outputs.add(name="OUTPUT1")
    answer = stub.ModelInfer(request, timeout=10)
    assert answer.id == "my-id" and [item.name for item in answer.outputs] == ["OUTPUT1"]
    assert answer.raw_output_contents[0] == bytes(64)


@pytest.mark.parametrize("method", ["SystemSharedMemoryStatus", "CudaSharedMemoryRegister", "TraceSetting"])
def test_what_is_not_offered_is_unimplemented(stub, method):
    names = {"TraceSetting": "TraceSettingRequest"}
    message = getattr(service_pb2, names.get(method, f"{method}Request"))()
    with pytest.raises(grpc.RpcError) as error:
        getattr(stub, method)(message, timeout=10)
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_a_stream_may_end_at_its_first_error(stub):
    """With the status of the error, for a client that asks for it."""
    answers = stub.ModelStreamInfer(iter([pair(), make("unknown"), pair()]), timeout=10,
                                    metadata=[("triton_grpc_error", "true")])
    assert next(answers).infer_response.model_name == "simple"
    with pytest.raises(grpc.RpcError) as error:
        next(answers)
    assert error.value.code() == grpc.StatusCode.NOT_FOUND


def test_the_same_mistakes_read_the_same_over_rest(stub, general):
    _, text, _ = refused(stub, make("simple", ("INPUT0", "INT32", [1, 16], "int_contents", [1] * 16)))
    body = {"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1, 16], "data": [1] * 16}]}
    assert json.loads(general.infer("simple", body).body)["error"] == text


def test_the_datatypes_are_all_covered():
    assert set(TYPED) | {"FP16", "BF16"} == set(models.DATATYPES)
