"""Models that others trained, served, against ONNX Runtime in Python: bit for bit, alone and together."""

import numpy
import pytest

import conftest
from harness import clients, reference

REAL = ("silero_vad", "magika", "mlp")


@pytest.fixture(scope="module", params=clients.FLAVOURS)
def client(request, real):
    made = conftest.connect(real, request.param)
    yield made
    made.close()


def sample(name, seed=0):
    """One request's inputs."""
    random = numpy.random.Generator(numpy.random.PCG64(seed))
    if name == "silero_vad":
        frame = random.standard_normal((1, 576)).astype(numpy.float32) / 10
        return {"input": frame, "state": numpy.zeros((2, 1, 128), numpy.float32),
                "sr": numpy.array(16000, numpy.int64)}
    if name == "magika":
        return {"bytes": random.integers(0, 257, (1, 2048), numpy.int32)}
    return {"input": random.standard_normal((1, 512), numpy.float32)}


def expect(real_models, name, arrays):
    return reference.answers(real_models / name / "1" / "model.onnx", arrays)


def check(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes(), f"{name} differs"


def test_the_quickstarts_models_are_all_covered(real_models):
    assert {path.parent.parent.name for path in real_models.glob("*/*/model.onnx")} == set(REAL)


@pytest.mark.parametrize("name", REAL)
def test_answers_equal_onnxruntimes(client, real_models, name):
    for seed in range(5):
        arrays = sample(name, seed)
        check(client.infer(name, arrays).arrays, expect(real_models, name, arrays))


def test_speech_frame_by_frame_with_its_state(client, real_models):
    session = reference.session(real_models / "silero_vad/1/model.onnx")
    random = numpy.random.Generator(numpy.random.PCG64(3))
    state = numpy.zeros((2, 1, 128), numpy.float32)
    for _ in range(20):
        frame = (random.standard_normal((1, 576)) / 5).astype(numpy.float32)
        arrays = {"input": frame, "state": state, "sr": numpy.array(16000, numpy.int64)}
        found = client.infer("silero_vad", arrays).arrays
        expected = dict(zip(("output", "stateN"), session.run(["output", "stateN"], arrays)))
        check(found, expected)
        state = found["stateN"]


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 16, 32])
def test_rows_of_one_request_equal_onnxruntimes_batch(client, real_models, rows):
    batch = numpy.concatenate([sample("mlp", seed)["input"] for seed in range(rows)])
    check(client.infer("mlp", {"input": batch}).arrays, expect(real_models, "mlp", {"input": batch}))


def test_requests_batched_by_the_server_equal_some_batch_of_onnxruntime(client, real, real_models):
    # Each answer equals, bit for bit, what ONNX Runtime gives for that row in a batch of the size that the
    # access log says it ran in: rows are independent, so only the size matters.
    many = [sample("mlp", seed) for seed in range(48)]
    answers = client.infer_many("mlp", many)
    sizes = {line["batch"] for line in real.lines_of("mlp")[-48:]}
    session = reference.session(real_models / "mlp/1/model.onnx")
    for arrays, answer in zip(many, answers):
        expected = {session.run(None, {"input": numpy.repeat(arrays["input"], size, 0)})[0][:1].tobytes()
                    for size in sizes}
        assert answer.arrays["output"].tobytes() in expected
