"""The whole surface by tritonclient, written by others: HTTP, gRPC and both asyncio flavours."""

import json

import ml_dtypes
import numpy
import pytest
from tritonclient.utils import InferenceServerException

from harness import models, reference

# A tensor of each datatype with the values that break conversions.
SAMPLES = {
    "BOOL": numpy.array([[True, False, True]]),
    "UINT8": numpy.array([[0, 1, 255]], numpy.uint8),
    "UINT16": numpy.array([[0, 1, 65535]], numpy.uint16),
    "UINT32": numpy.array([[0, 1, 2**32 - 1]], numpy.uint32),
    "UINT64": numpy.array([[0, 2**53 + 1, 2**64 - 1]], numpy.uint64),
    "INT8": numpy.array([[-128, 0, 127]], numpy.int8),
    "INT16": numpy.array([[-32768, 0, 32767]], numpy.int16),
    "INT32": numpy.array([[-(2**31), 0, 2**31 - 1]], numpy.int32),
    "INT64": numpy.array([[-(2**63), 9007199254740993, 2**63 - 1]], numpy.int64),  # U147
    "FP16": numpy.array([[0x0001, 0x3C00, 0x7BFF, 0x0000, 0xFBFF]], numpy.uint16).view(numpy.float16),
    "FP32": numpy.array([[1e-45, 0.0, 0.1, -3.4028235e38]], numpy.float32),
    "FP64": numpy.array([[5e-324, 0.0, 0.1, -1.7976931348623157e308]], numpy.float64),
    "BYTES": numpy.array([[b"plain", "käse ✓".encode(), b""]], numpy.object_),
    "BF16": numpy.array([[0x0001, 0x3F80, 0x7F7F, 0x0000, 0xFF7F]], numpy.uint16).view(ml_dtypes.bfloat16),
}
PAIR = {"INPUT0": numpy.arange(16, dtype=numpy.int32).reshape(1, 16),
        "INPUT1": numpy.full((1, 16), 3, numpy.int32)}


def bits(array):
    if array.dtype == numpy.object_:  # tritonclient gives text for JSON, bytes for binary
        return [item.encode() if isinstance(item, str) else item for item in array.ravel()]
    return array.tobytes()


def status_of(client, error):
    """HTTP's number or gRPC's name of a refusal, in one alphabet."""
    grpc = {"StatusCode.INVALID_ARGUMENT": "400", "StatusCode.NOT_FOUND": "404",
            "StatusCode.UNAVAILABLE": "503", "StatusCode.UNIMPLEMENTED": "501"}
    text = str(error.value.status())
    return text if client.http else grpc.get(text, text)


# -- health, metadata, config


def test_health(client):
    assert client.call("is_server_live") is True
    assert client.call("is_server_ready") is True
    assert client.call("is_model_ready", "simple") is True
    assert client.call("is_model_ready", "simple", "1") is True
    assert client.call("is_model_ready", "simple", "9") is False
    assert client.call("is_model_ready", "nothing") is False


def test_server_metadata(client):
    found = client.call("get_server_metadata")
    assert found["name"] == "baton"
    assert {"binary_tensor_data", "model_configuration", "schedule_policy"} <= set(found["extensions"])


def test_model_metadata(client):
    found = client.call("get_model_metadata", "simple")
    assert (found["name"], found["versions"], found["platform"]) == ("simple", ["1"], "onnxruntime_onnx")
    shapes = [(item["name"], item["datatype"], [int(size) for size in item["shape"]])
              for item in found["inputs"] + found["outputs"]]
    assert shapes == [(name, "INT32", [-1, 16]) for name in ("INPUT0", "INPUT1", "OUTPUT0", "OUTPUT1")]


def test_model_config(client):
    found = client.call("get_model_config", "simple")
    found = found.get("config", found)
    assert (found["name"], found["max_batch_size"]) == ("simple", 8)
    assert [int(size) for size in found["input"][0]["dims"]] == [16]
    assert found["input"][0]["data_type"] == "TYPE_INT32"
    assert "dynamic_batching" in found


def test_versions(client):
    rows = numpy.array([[1, 2]], numpy.float32)
    assert client.infer("versions", {"X": rows}, ["Y"]).version == "3", "the highest version answers"
    second = client.infer("versions", {"X": rows}, ["Y"], model_version="2")
    assert (second.version, second.arrays["Y"].tolist()) == ("2", [[10, 20]])
    assert sorted(client.call("get_model_metadata", "versions")["versions"]) == ["1", "2", "3"]


# -- inference


def test_add_and_subtract(client):
    found = client.infer("simple", PAIR, ["OUTPUT0", "OUTPUT1"])
    assert found.model == "simple" and found.version == "1"
    assert (found.arrays["OUTPUT0"] == PAIR["INPUT0"] + 3).all()
    assert (found.arrays["OUTPUT1"] == PAIR["INPUT0"] - 3).all()


@pytest.mark.parametrize("datatype", sorted(models.DATATYPES))
def test_each_datatype_comes_back_bit_for_bit(client, datatype):
    # client PR 897, server#7853: BF16 is passed through, not truncated from FP32.
    if client.json and datatype == "BF16":
        pytest.skip("tritonclient sends BF16 only as binary data; test_rest.py sends it as JSON")
    sample = SAMPLES[datatype]
    found = client.infer(f"identity_{datatype.lower()}", {"IN": sample}, ["OUT"])
    assert found.datatypes == {"OUT": datatype}
    assert found.arrays["OUT"].shape == sample.shape
    assert bits(found.arrays["OUT"]) == bits(sample)


def test_fp16_patterns_come_back_bit_for_bit(client):
    if client.json:
        pytest.skip("JSON has no NaN and no infinity")
    every = numpy.arange(65536, dtype=numpy.uint16).reshape(16, 4096)
    for row in every:
        sample = row.reshape(4, 1024)
        for kind in (numpy.float16, ml_dtypes.bfloat16):
            name = "fp16" if kind is numpy.float16 else "bf16"
            found = client.infer(f"identity_{name}", {"IN": sample.view(kind)}, ["OUT"])
            assert bits(found.arrays["OUT"]) == bits(sample)


def test_bytes_that_are_no_text(client):
    if client.json:
        pytest.skip("JSON strings are text")
    sample = numpy.array([[b"\x00\xff\xfe", b"\x80" * 300, b""]], numpy.object_)  # server#3524
    found = client.infer("identity_bytes", {"IN": sample}, ["OUT"])
    assert found.arrays["OUT"].tolist() == sample.tolist()


def test_requested_outputs_are_what_comes_back(client):
    # MLServer#514: requested outputs ignored when batched
    asked = [["OUTPUT1"], ["OUTPUT0"], ["OUTPUT1", "OUTPUT0"]]
    for names in asked:
        assert set(client.infer("simple", PAIR, names).arrays) == set(names)
    together = [client.infer_many("simple", [PAIR] * 4, names) for names in asked]
    for names, answers in zip(asked, together):
        assert all(set(answer.arrays) == set(names) for answer in answers)


def test_without_requested_outputs_all_come_back(client):
    assert list(client.infer("simple", PAIR).arrays) == ["OUTPUT0", "OUTPUT1"]


def test_the_request_id_comes_back(client):
    assert client.infer("simple", PAIR, ["OUTPUT0"], request_id="id-7 \"ä\"").id == "id-7 \"ä\""


def test_scalar_and_empty_tensors(client):
    assert client.infer("flat_bytes", {"IN": numpy.array([], numpy.object_)}, ["OUT"]).arrays["OUT"].shape == (0,)
    assert client.infer("scalar", {"IN": numpy.array(1.5, numpy.float32)}, ["OUT"]).arrays["OUT"].tolist() == 1.5
    empty = numpy.empty((2, 0, 3), numpy.float32)
    assert client.infer("dynamic", {"X": empty}, ["Y"]).arrays["Y"].shape == (2, 0, 3)


# -- errors


def refusal(client, model, arrays, outputs=None, **more):
    with pytest.raises(InferenceServerException) as error:
        client.infer(model, arrays, outputs, **more)
    return status_of(client, error), error.value.message()


def test_an_unknown_model_is_not_found(client):
    status, text = refusal(client, "nothing", PAIR)
    assert (status, "nothing" in text) == ("404", True), text


def test_an_unknown_version_is_not_found(client):
    status, text = refusal(client, "simple", PAIR, model_version="7")
    assert status == "404" and "simple" in text and "7" in text


def test_a_version_that_is_no_number_is_invalid(client):
    status, text = refusal(client, "simple", PAIR, model_version="latest")
    assert status == "400" and "version" in text


def test_a_wrong_shape_is_invalid_and_names_both(client):
    wrong = PAIR | {"INPUT1": numpy.zeros((1, 15), numpy.int32)}
    status, text = refusal(client, "simple", wrong)
    assert status == "400" and "INPUT1" in text and "[-1,16]" in text and "[1,15]" in text, text


def test_a_wrong_datatype_is_invalid_and_names_both(client):
    # U147: INT64 ids sent where INT32 is wanted
    wrong = PAIR | {"INPUT0": PAIR["INPUT0"].astype(numpy.int64)}
    status, text = refusal(client, "simple", wrong)
    assert status == "400" and "INPUT0" in text and "INT32" in text and "INT64" in text, text


def test_a_batch_beyond_the_maximum_is_invalid(client):
    wrong = {name: numpy.zeros((9, 16), numpy.int32) for name in PAIR}
    status, text = refusal(client, "simple", wrong)
    assert status == "400" and "9" in text and "8" in text, text


def test_missing_extra_and_differing_inputs_are_invalid(client):
    one = {"INPUT0": PAIR["INPUT0"]}
    status, text = refusal(client, "simple", one)
    assert status == "400" and "INPUT1" in text, text
    status, text = refusal(client, "simple", PAIR | {"INPUT2": PAIR["INPUT0"]})
    assert status == "400" and "INPUT2" in text, text
    status, text = refusal(client, "simple", PAIR | {"INPUT1": numpy.zeros((2, 16), numpy.int32)})
    assert status == "400" and "batch" in text, text


def test_an_unknown_output_is_invalid(client):
    status, text = refusal(client, "simple", PAIR, ["OUTPUT9"])
    assert status == "400" and "OUTPUT9" in text, text


def test_sequences_are_refused_not_ignored(client):
    status, text = refusal(client, "simple", PAIR, sequence_id=5, sequence_start=True)
    assert status == "400" and "sequence" in text, text


# -- many at once


def test_concurrent_requests_are_batched_and_each_gets_its_own(client, general):
    # MLServer#541: results of a batch's members stay apart
    rows = numpy.arange(24 * 4, dtype=numpy.float32).reshape(24, 1, 4)
    names = ("nv_inference_count", "nv_inference_exec_count")
    before = [general.metric(name, model="slow") for name in names]
    answers = client.infer_many("slow", [{"X": row} for row in rows], ["Y"])
    after = [general.metric(name, model="slow") for name in names]
    items, runs = (new - old for new, old in zip(after, before))
    assert items == 24
    assert runs <= 12, f"24 requests took {runs} runs"
    for answer, row in zip(answers, rows):
        assert answer.arrays["Y"].tolist() == row.tolist()


def test_a_request_of_several_rows_equals_onnxruntime(client, general_models):
    random = numpy.random.Generator(numpy.random.PCG64(9))
    path = general_models / "mlp/1/model.onnx"
    session = reference.session(path)
    for rows in (1, 2, 5, 8, 32):
        batch = random.standard_normal((rows, 512), numpy.float32)
        expected = session.run(["output"], {"input": batch})[0]
        found = client.infer("mlp", {"input": batch}, ["output"]).arrays["output"]
        assert found.tobytes() == expected.tobytes(), f"{rows} rows differ"


def test_dynamic_shapes(client, general_models):
    session = reference.session(general_models / "dynamic/1/model.onnx")
    random = numpy.random.Generator(numpy.random.PCG64(11))
    for shape in ((1, 1, 1), (2, 3, 5), (4, 100, 7)):
        sample = random.standard_normal(shape, numpy.float32)
        found = client.infer("dynamic", {"X": sample}, ["Y"]).arrays["Y"]
        assert found.tobytes() == session.run(["Y"], {"X": sample})[0].tobytes()


def test_a_model_without_a_batch_dimension(client):
    sample = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    assert client.infer("fixed", {"X": sample}, ["Y"]).arrays["Y"].tolist() == (sample * 2 + 1).tolist()
    status, text = refusal(client, "fixed", {"X": numpy.zeros((4, 3, 4), numpy.float32)})
    assert status == "400" and "[3,4]" in text, text


def test_other_extensions_say_that_they_are_not_offered(client):
    with pytest.raises(InferenceServerException) as error:
        client.call("get_system_shared_memory_status")
    assert status_of(client, error) in ("404", "501"), error.value


def test_json_of_the_config_has_numbers_as_numbers(general):
    found = json.loads(general.get("/v2/models/simple/config").body)
    assert found["input"][0]["dims"] == [16]
    assert found["version_policy"] == {"latest": {"num_versions": 1}}
