"""The quickstart's questions and answers, with onnxruntime in the server's place."""

import collections
import pathlib
import subprocess
import sys

import numpy
import onnx
import onnxruntime
import pytest
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "quickstart"
sys.path.insert(0, str(EXAMPLE))

import checks  # noqa: E402
import files  # noqa: E402
import mlp  # noqa: E402
import ocr  # noqa: E402
import picture  # noqa: E402
import prepare  # noqa: E402
import speech  # noqa: E402

MODELS = EXAMPLE / "models"


class Local:
    """Executes models in this process; counts as a server that makes batches of `batch`."""

    name = "onnxruntime"

    def __init__(self, batch=16):
        self.sessions = {}
        self.states = {}  # of sequences
        self.inferences = collections.Counter()
        self.batch = batch

    def infer(self, model, arrays, sequence_id=0, sequence_start=False, sequence_end=False):
        if model not in self.sessions:
            path = str(MODELS / model / "1" / "model.onnx")
            self.sessions[model] = onnxruntime.InferenceSession(path)
        session = self.sessions[model]
        self.inferences[model] += 1
        names = [item.name for item in session.get_outputs()]
        if not sequence_id:
            return dict(zip(names, session.run(None, arrays)))
        if sequence_start:
            self.states[sequence_id] = numpy.zeros((2, 1, 128), numpy.float32)
        outputs = dict(zip(names, session.run(None, arrays | {"state": self.states[sequence_id]})))
        self.states[sequence_id] = outputs.pop("stateN")
        return outputs

    def infer_many(self, model, many):
        return [self.infer(model, arrays) for arrays in many]

    def metrics(self):
        lines = ["# TYPE nv_inference_count counter"]
        for model, count in self.inferences.items():
            lines += [f'nv_inference_count{{model="{model}",version="1"}} {count}',
                      f'nv_inference_exec_count{{model="{model}",version="1"}} {count // self.batch}']
        return "\n".join(lines) + "\n"


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
    assert (report.right, report.wrong) == (4, 0), report.lines


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


def read(image):
    alphabet = (MODELS / "ocr_recogniser/characters.txt").read_text(encoding="utf-8")
    return ocr.Reader(Local(), alphabet.removesuffix("\n").split("\n")).read(image)


def test_the_ticket_is_read(report, tmp_path):
    local = Local(batch=1)
    checks.check_ocr(report, local, local, local.metrics, (MODELS, tmp_path))
    assert (report.right, report.wrong) == (len(picture.TICKET) + 1, 0), report.lines
    assert "7 lines at once, 7 executions" in report.lines[0]
    assert any("Tear off here before boarding" in line and "upside down" in line for line in report.lines)
    assert (tmp_path / "ticket.png").stat().st_size > 1000


def test_wrong_missing_and_surplus_lines_are_noticed(report):
    box = ocr.Box((100, 20), 100, 20, 0)
    first, second = picture.Line("Coach C", (0, 0), 20), picture.Line("Seat 21", (0, 0), 20)
    found = ocr.Line("Coach G", 0.75, box, False)
    checks.check_lines(report, [found], (first, second))
    assert (report.right, report.wrong) == (0, 2)
    assert "Coach G" in report.lines[0] and "“Coach C” expected" in report.lines[0]
    assert "nothing read, “Seat 21” expected" in report.lines[1]
    checks.check_lines(report, [ocr.Line("Coach C", 1, box, True)], (first,))
    checks.check_lines(report, [ocr.Line("Coach C", 1, box, False)] * 2, (first,))
    assert (report.right, report.wrong) == (1, 4)
    assert "no such line" in report.lines[-1]


def test_an_empty_picture_has_no_lines():
    assert read(picture.draw(())) == []


def test_a_large_picture_is_read_from_a_smaller_one_and_cut_from_the_large_one():
    lines = (picture.Line("Good morning", (700, 200), 90), picture.Line("to the sea", (700, 620), 90, turn=184))
    found = read(picture.draw(lines, (1400, 800)))
    assert [(line.text, line.is_upside_down) for line in found] == [("Good morning", False), ("to the sea", True)]
    for line, written in zip(found, lines):
        assert numpy.abs(numpy.subtract(line.box.middle, written.middle)).max() < 20


def test_regions_join_below_a_gap_and_at_corners():
    mask = numpy.array([[1, 0, 1, 0, 0, 1],
                        [1, 1, 1, 0, 1, 0],
                        [0, 0, 0, 0, 0, 0],
                        [1, 1, 0, 0, 0, 0]], bool)
    found = sorted(sorted(region) for region in ocr.regions(mask))
    assert found == [[(0, 0, 1), (0, 2, 3), (1, 0, 3)], [(0, 5, 6), (1, 4, 5)], [(3, 0, 2)]]
    assert ocr.regions(numpy.zeros((3, 3), bool)) == []


@pytest.mark.parametrize("degrees", [-40, -12, 0, 0.5, 30])
def test_the_smallest_box_is_the_one_that_was_drawn(degrees):
    angle = numpy.radians(degrees)
    turn = numpy.array([[numpy.cos(angle), numpy.sin(angle)], [-numpy.sin(angle), numpy.cos(angle)]])
    corners = numpy.array([[-60, -10], [60, -10], [60, 10], [-60, 10]]) @ turn + [200, 100]
    box = ocr.smallest_box(corners)
    numpy.testing.assert_allclose([*box.middle, box.width, box.height, box.angle], [200, 100, 120, 20, angle],
                                  atol=1e-6)


def test_specks_and_unlikely_regions_are_no_lines():
    likely = numpy.zeros((40, 80), numpy.float32)
    likely[5:15, 10:70] = 0.9
    likely[20:22, 10:12] = 0.9  # a speck
    likely[25:35, 10:70] = 0.4  # a core, but not likely enough
    (box,) = ocr.cores(likely)
    assert (box.middle, box.width, box.height) == ((40, 10), 60, 10)
    grown = ocr.grow(box)  # 600 pixels / 140 of perimeter * 1.6 on each side
    assert grown.width - 60 == pytest.approx(2 * 600 / 140 * 1.6)


def test_repeats_are_one_character_and_blanks_separate():
    steps = numpy.eye(4, dtype=numpy.float32)[[0, 1, 1, 0, 1, 2, 2, 3, 0, 0]] * 0.5
    assert ocr.decode(steps, ["a", "b", " "]) == ("aab ", 0.5)
    assert ocr.decode(numpy.eye(4, dtype=numpy.float32)[[0, 0]], ["a", "b", " "]) == ("", 0.0)


def test_lines_are_padded_to_few_widths():
    image = picture.draw((), (300, 30))
    assert (ocr.width_of(image), ocr.padded_width(image)) == (480, 480)
    found = ocr.line_tensor(image.crop((0, 0, 50, 30)), 160)
    assert found.shape == (1, 3, 48, 160) and found.dtype == numpy.float32
    assert (found[..., 80:] == 0).all() and (found[..., :80] != 0).all()
    assert ocr.padded_width(image.crop((0, 0, 300, 1))) == ocr.LONGEST_LINE


def test_colours_go_in_blue_first():
    found = ocr.tensor(Image.new("RGB", (2, 1), (255, 0, 51)))
    numpy.testing.assert_allclose(found[0, :, 0, 0], [-0.6, -1, 1], atol=1e-6)


def test_the_alphabet_comes_from_the_models_own_metadata():
    path = MODELS / "ocr_recogniser" / "1" / "model.onnx"
    session = onnxruntime.InferenceSession(str(path))
    expected = session.get_modelmeta().custom_metadata_map["character"]
    assert prepare.metadata(path.read_bytes(), "character") == expected
    alphabet = (MODELS / "ocr_recogniser/characters.txt").read_text(encoding="utf-8").split("\n")
    assert alphabet == [*expected.strip("\n").split("\n"), " ", ""]
    classes = session.get_outputs()[0].shape[-1]
    assert len(alphabet) - 1 == classes - 1  # one class is the blank
    with pytest.raises(SystemExit, match="no 'colour'"):
        prepare.metadata(path.read_bytes(), "colour")
