"""The quickstart's questions and answers, with onnxruntime in the server's place."""

import pathlib
import subprocess
import sys

import numpy
import onnx
import onnxruntime
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "quickstart"
sys.path.insert(0, str(EXAMPLE))

import checks  # noqa: E402
import files  # noqa: E402
import mlp  # noqa: E402
import speech  # noqa: E402

MODELS = EXAMPLE / "models"


class Local:
    """Executes models in this process; counts as a server that makes batches of `batch`."""

    name = "onnxruntime"

    def __init__(self, batch=16):
        self.sessions = {}
        self.inferences = 0
        self.batch = batch

    def infer(self, model, arrays):
        if model not in self.sessions:
            path = str(MODELS / model / "1" / "model.onnx")
            self.sessions[model] = onnxruntime.InferenceSession(path)
        session = self.sessions[model]
        self.inferences += model == "mlp"
        names = [item.name for item in session.get_outputs()]
        return dict(zip(names, session.run(None, arrays)))

    def infer_many(self, model, many):
        return [self.infer(model, arrays) for arrays in many]

    def metrics(self):
        return (f'# TYPE nv_inference_count counter\nnv_inference_count{{model="mlp",version="1"}} '
                f'{self.inferences}\nnv_inference_count{{model="magika",version="1"}} 7\n'
                f'nv_inference_exec_count{{model="mlp",version="1"}} {self.inferences // self.batch}\n')


@pytest.fixture(scope="module", autouse=True)
def models():
    subprocess.run([ROOT / "tools" / "quickstart", "prepare"], check=True)


@pytest.fixture(name="report")
def make_report():
    lines = []
    report = checks.Report(lines.append)
    report.lines = lines
    return report


def test_speech_is_found_in_a_sentence_and_not_in_silence(report, tmp_path):
    checks.check_speech(report, Local(), Local(), tmp_path)
    assert (report.right, report.wrong) == (3, 0), report.lines


def test_file_types_are_named(report):
    checks.check_files(report, Local(), Local(), EXAMPLE / "samples", MODELS / "magika/labels.txt")
    assert (report.right, report.wrong) == (7, 0), report.lines


def test_batched_answers_equal_numpys(report):
    local = Local()
    checks.check_batching(report, local, local, local.metrics)
    assert (report.right, report.wrong) == (4, 0), report.lines
    assert report.close() == 0


def test_a_server_that_does_not_batch_is_noticed(report):
    local = Local(batch=1)
    checks.check_batching(report, local, local, local.metrics)
    assert report.wrong == 2
    assert report.close() == 1


def test_an_error_is_a_wrong_answer(report):
    def broken(*_):
        raise RuntimeError("model mlp is not ready")

    report.guard(broken)
    assert report.wrong == 1
    assert "✗ no answer: RuntimeError: model mlp is not ready" in report.lines[0]
    assert report.close() == 1


def test_the_mlp_file_is_valid_onnx():
    onnx.checker.check_model(str(MODELS / "mlp/1/model.onnx"), full_check=True)
    parameters = sum(weights.size + bias.size for weights, bias in mlp.layers())
    assert 9.4e6 < parameters < 9.6e6


def test_features_skip_white_space_and_pad():
    found = files.features(b"  ab \n")[0]
    assert found.shape == (2048,)
    assert list(found[:3]) == [97, 98, 32]
    assert found[4] == files.PADDING
    assert list(found[-3:]) == [32, 97, 98]
    assert found[-6] == files.PADDING
    long = files.features(bytes(range(256)) * 40)[0]
    assert long[0] == 0 and long[1023] == 255 and long[-1] == 255


def test_resampling_keeps_a_tone():
    time = numpy.arange(22050) / 22050
    tone = numpy.sin(2 * numpy.pi * 440 * time).astype(numpy.float32)
    found = speech.resample(tone, 22050)
    expected = numpy.sin(2 * numpy.pi * 440 * numpy.arange(16000) / 16000)
    assert len(found) == 16000
    assert numpy.abs(found - expected)[100:-100].max() < 1e-3
