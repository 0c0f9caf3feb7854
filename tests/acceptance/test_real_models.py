"""Models that others trained, served, against ONNX Runtime in Python: bit for bit, alone and together."""

import numpy
import pytest
from tritonclient.utils import InferenceServerException

import conftest
from harness import clients, reference

OCR = {"ocr_detector": (448, 640), "ocr_classifier": (48, 192), "ocr_recogniser": (48, 320)}
REAL = ("silero_vad", "magika", "mlp", *OCR)


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
    if name in OCR:
        return {"x": crop(1, *OCR[name], seed)}
    return {"input": random.standard_normal((1, 512), numpy.float32)}


def crop(rows, height, width, seed=0):
    """Pixels as PP-OCRv4 takes them: float32 [rows, 3, height, width] in [-1, 1)."""
    random = numpy.random.Generator(numpy.random.PCG64(seed))
    return random.random((rows, 3, height, width), numpy.float32) * 2 - 1


def expect(real_models, name, arrays):
    return reference.answers(real_models / name / "1" / "model.onnx", arrays)


def check(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes(), f"{name} differs"


def test_the_quickstarts_models_are_all_covered(real_models):
    # As a sequence the speech model is in test_sequences.py and in the quickstart itself.
    named = {path.parent.parent.name for path in real_models.glob("*/*/model.onnx")}
    assert named == {*REAL, "silero_vad_stream"}


@pytest.mark.parametrize("name", REAL)
def test_answers_equal_onnxruntimes(client, real_models, name):
    for seed in range(2 if name in OCR else 5):
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


@pytest.fixture(scope="module", name="sessions")
def open_sessions(real_models):
    return {name: reference.session(real_models / name / "1" / "model.onnx") for name in OCR}


def compare(client, sessions, name, pixels):
    names = [item.name for item in sessions[name].get_outputs()]
    expected = dict(zip(names, sessions[name].run(names, {"x": pixels})))
    check(client.infer(name, {"x": pixels}).arrays, expected)


@pytest.mark.parametrize("size", [(32, 32), (32, 352), (96, 64), (448, 640)])
def test_pictures_of_any_size_are_searched_as_by_onnxruntime(client, sessions, size):
    compare(client, sessions, "ocr_detector", crop(1, *size))


@pytest.mark.parametrize("rows", [1, 2, 5, 32])
def test_lines_of_one_request_are_classified_as_by_onnxruntime(client, sessions, rows):
    compare(client, sessions, "ocr_classifier", crop(rows, 48, 192, rows))


@pytest.mark.parametrize("rows, width", [(1, 8), (1, 41), (3, 160), (2, 320), (8, 64), (1, 800)])
def test_lines_of_any_width_are_read_as_by_onnxruntime(client, sessions, rows, width):
    compare(client, sessions, "ocr_recogniser", crop(rows, 48, width, rows))


def test_lines_of_several_widths_at_once_get_their_own_answers(client, real, sessions):
    # As in a picture: neighbours differ in shape, so that a queue a shape and batches within it are used.
    many = [crop(1, 48, (64, 96, 160)[seed % 3], seed) for seed in range(18)]
    answers = client.infer_many("ocr_recogniser", [{"x": pixels} for pixels in many])
    sizes = {line["batch"] for line in real.lines_of("ocr_recogniser")[-len(many):]}
    for pixels, answer in zip(many, answers):
        expected = {sessions["ocr_recogniser"].run(None, {"x": numpy.repeat(pixels, size, 0)})[0][:1].tobytes()
                    for size in sizes}
        assert answer.arrays["softmax_11.tmp_0"].tobytes() in expected


@pytest.mark.parametrize("name, shape, told", [
    ("ocr_detector", (2, 3, 32, 32), "batch size 2"),
    ("ocr_detector", (1, 1, 32, 32), "[1,1,32,32]"),
    ("ocr_classifier", (1, 3, 48, 100), "[1,3,48,100]"),
    ("ocr_recogniser", (1, 3, 32, 320), "[1,3,32,320]"),
    ("ocr_recogniser", (9, 3, 48, 8), "batch size 9"),
])
def test_a_shape_that_the_configuration_rules_out_is_refused_by_name(client, name, shape, told):
    with pytest.raises(InferenceServerException) as refused:
        client.infer(name, {"x": numpy.zeros(shape, numpy.float32)})
    assert refused.value.status() in ("400", "StatusCode.INVALID_ARGUMENT")
    assert name in str(refused.value) and told in str(refused.value)
