"""`baton optimize`: another form of a model beside it, compared with the original."""

import json
import subprocess
import sys

import numpy
import pytest
from onnx import helper

from harness import models, reference, server

HIDDEN = 256


def network(seed=3):
    """Two matrices with a step between them; FP32 in and out."""
    random = numpy.random.Generator(numpy.random.PCG64(seed))
    weights = [models.constant(name, random.standard_normal(shape).astype(numpy.float32) / 10)
               for name, shape in (("first", (16, HIDDEN)), ("second", (HIDDEN, 8)))]
    nodes = [helper.make_node("MatMul", ["X", "first"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("MatMul", ["b", "second"], ["Y"])]
    return models.model(nodes, [models.value("X", "FP32", [-1, 16])], [models.value("Y", "FP32", [-1, 8])], weights)


CONFIG = ('name: "net" # its own\nmax_batch_size: 4\n' + models.tensor_text("input", "X", "FP32", [16])
          + models.tensor_text("output", "Y", "FP32", [8], 'label_filename: "labels.txt"'))


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "models"
    models.write(folder, "net", network(), CONFIG, versions=(1, 3))
    (folder / "net" / "labels.txt").write_text("\n".join("abcdefgh"))
    models.write(folder, "plain", network())
    models.write(folder, "affine", models.affine([-1, 4]))
    return folder


@pytest.fixture
def recorded(tmp_path):
    folder = tmp_path / "recorded"
    folder.mkdir()
    random = numpy.random.Generator(numpy.random.PCG64(9))
    for index in range(5):
        numpy.savez(folder / f"{index}.npz", X=random.standard_normal((2, 16)).astype(numpy.float32))
    return folder


def optimize(*words, python=sys.executable):
    done = subprocess.run([server.binary(), "--output", "json", "optimize", *map(str, words), "--python", python],
                          capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


@pytest.mark.parametrize(("kind", "least", "most"), [("fp16", 1e-7, 0.01), ("int8", 1e-5, 0.2)])
def test_what_is_made_is_smaller_close_and_served(repository, recorded, make_server, kind, least, most):
    status, report, error = optimize("net", repository, "--to", kind, "--inputs", recorded)
    assert status == 0, error
    assert report["version"] == 3 and report["recorded"] and report["requests"] == 5
    assert report["bytes_after"] < 0.7 * report["bytes_before"]
    assert [each["rows"] for each in report["speed"]] == [2, 4]
    assert all(each["before_ms"] > 0 and each["after_ms"] > 0 for each in report["speed"])
    accuracy, = report["accuracy"]
    assert least < accuracy["largest_share"] < most and accuracy["same_largest_index"] >= 0.8
    # What the report says is what a client sees.
    running = make_server(repository)
    with numpy.load(recorded / "0.npz") as arrays:
        rows = arrays["X"]
    body = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [2, 16], "data": rows.ravel().tolist()}],
            "outputs": [{"name": "Y"}]}
    found = numpy.array(running.infer(f"net_{kind}", body).json()["outputs"][0]["data"]).reshape(2, 8)
    wanted = reference.session(network().SerializeToString()).run(None, {"X": rows})[0]
    assert 0 < numpy.abs(found - wanted).max() <= accuracy["largest_difference"] * 1.01
    assert ("batch_tolerance" in (repository / f"net_{kind}" / "config.pbtxt").read_text()) == (kind == "int8")
    labelled = body | {"outputs": [{"name": "Y", "parameters": {"classification": 1}}]}
    assert running.infer(f"net_{kind}", labelled).json()["outputs"][0]["data"][0].split(":")[2] in "abcdefgh"


def test_inputs_are_made_up_where_none_are_recorded(repository):
    status, report, error = optimize("plain", repository, "--to", "int8", "--model-version", 1)
    assert status == 0, error
    assert not report["recorded"] and [each["rows"] for each in report["speed"]] == [1, 32]
    assert "max_batch_size: 32" in (repository / "plain_int8" / "config.pbtxt").read_text()
    assert report["batch_difference"] > 1e-4


def test_the_original_and_its_folder_are_left_alone(repository):
    before = {path: path.read_bytes() for path in repository.rglob("*") if path.is_file()}
    assert optimize("net", repository, "--to", "fp16")[0] == 0
    assert all(path.read_bytes() == data for path, data in before.items())
    assert sorted(path.name for path in (repository / "net_fp16").iterdir()) == ["1", "config.pbtxt", "labels.txt"]
    assert '"net_fp16" # its own' in (repository / "net_fp16" / "config.pbtxt").read_text()


def test_a_bound_on_the_difference_leaves_nothing_behind(repository, tmp_path):
    other = tmp_path / "other"
    status, _, error = optimize("net", repository, "--to", "int8", "--out", other, "--max-difference", 1e-6)
    assert status == 1 and "max-difference" in error
    assert list(other.iterdir()) == []


def test_what_is_there_stays_unless_it_may_go(repository):
    assert optimize("net", repository, "--to", "fp16")[0] == 0
    status, _, error = optimize("net", repository, "--to", "fp16")
    assert status == 2 and "--replace" in error
    assert optimize("net", repository, "--to", "fp16", "--replace")[0] == 0


def test_a_model_without_matrices_is_not_quantised(repository):
    status, _, error = optimize("affine", repository, "--to", "int8")
    assert status == 1 and "matrices" in error
    assert not (repository / "affine_int8").exists()


def wrong_recordings(folder):
    random = numpy.zeros((1, 16), numpy.float32)
    for name, arrays in {"other": {"X": random, "Z": random}, "missing": {"Z": random}}.items():
        (folder / name).mkdir()
        numpy.savez(folder / name / "0.npz", **arrays)
    (folder / "pickled").mkdir()
    numpy.savez(folder / "pickled" / "0.npz", X=numpy.array([{"a": 1}], object))
    (folder / "shape").mkdir()
    numpy.savez(folder / "shape" / "0.npz", X=numpy.zeros((1, 5), numpy.float32))
    (folder / "empty").mkdir()
    (folder / "broken").mkdir()
    (folder / "broken" / "0.npz").write_bytes(b"PK nothing")
    return {"other": (2, '"Z"'), "missing": (2, '"X"'), "pickled": (2, "0.npz"), "shape": (1, "does not run"),
            "empty": (2, "no .npz"), "broken": (2, "0.npz"), "absent": (2, "no .npz")}


def test_wrong_recordings_are_named(repository, tmp_path):
    for name, (expected, named) in wrong_recordings(tmp_path).items():
        status, _, error = optimize("net", repository, "--to", "fp16", "--inputs", tmp_path / name)
        assert status == expected and named in error and "Traceback" not in error, (name, status, error)
        assert not (repository / "net_fp16").exists()


@pytest.mark.parametrize(("words", "named"), [
    (["unknown"], "unknown"), (["net", "--model-version", "2"], "2"), (["net", "--shape", "Z=1,2"], '"Z"'),
    (["net", "--shape", "X"], "X")])
def test_wrong_words_are_named(repository, words, named):
    status, _, error = optimize(words[0], repository, "--to", "fp16", *words[1:])
    assert status == 2 and named in error and "Traceback" not in error, error


def test_a_python_without_the_tools_is_told_how_to_get_them(repository, tmp_path):
    status, _, error = optimize("net", repository, "--to", "fp16", python=tmp_path / "none")
    assert status == 2 and "cannot be run" in error
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    status, _, error = optimize("net", repository, "--to", "fp16", python=bare / "bin" / "python")
    assert status == 2 and "pip install" in error
