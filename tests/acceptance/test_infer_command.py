"""`baton infer` against a served model: every way to give inputs, every way to take outputs."""

import json
import os
import re
import socket
import subprocess

import numpy
import pytest

from harness import clients, models, server

RNG = numpy.random.default_rng(4)
NUMPY = {"bool": RNG.random((2, 3)) < 0.5, "fp16": RNG.random((2, 3)).astype(numpy.float16),
         "fp32": RNG.random((2, 3), dtype=numpy.float32), "fp64": RNG.random((2, 3)),
         "bytes": numpy.array([[b"a", b"", b"longer"], [b"\xff\x00\x01", b"b", b"c"]])}
NUMPY |= {f"{kind}{bits}": RNG.integers(0, 100, (2, 3)).astype(f"{kind}{bits}")
          for kind in ("int", "uint") for bits in (8, 16, 32, 64)}


def infer(running, *words, stdin="", environment=None):
    command = [server.binary(), "infer", *words, *(["--url", running.address("http")] if running else [])]
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, input=stdin,
                           timeout=60, check=False, env=os.environ | (environment or {}))
    return ended.returncode, ended.stdout, ended.stderr


def save(folder, array, name="input"):
    numpy.save(folder / f"{name}.npy", array)
    return folder / f"{name}.npy"


def refused(running, *words, status, said, **more):
    ended, out, error = infer(running, *words, **more)
    assert ended == status and re.fullmatch(r"baton: .*\n", error) and not out, (ended, out, error)
    assert said in error, error


@pytest.mark.parametrize("datatype", NUMPY)
def test_arrays_of_every_type_come_back(general, tmp_path, datatype):
    array = NUMPY[datatype]
    given = save(tmp_path, array)
    folder = tmp_path / "a" / "b"
    status, out, error = infer(general, f"identity_{datatype}", "--input", f"IN={given}", "--save", folder)
    assert status == 0, error
    assert out.splitlines()[0] == f"identity_{datatype}, version 1"
    assert out.splitlines()[1] == f"OUT  {datatype.upper()} [2,3]"
    back = numpy.load(folder / "OUT.npy")
    assert back.dtype == array.dtype
    numpy.testing.assert_array_equal(back, array)


def test_text_and_bfloat16_have_their_own_forms(general, tmp_path):
    given = save(tmp_path, numpy.array([["é", "", "日本"]]))
    assert infer(general, "identity_bytes", "--input", f"IN={given}", "--save", tmp_path)[0] == 0
    assert [word.decode() for word in numpy.load(tmp_path / "OUT.npy")[0]] == ["é", "", "日本"]
    floats = numpy.array([[1, -2.5, 3e38]], numpy.float32)
    halves = (floats.view(numpy.uint32) >> 16).astype(numpy.uint16)  # bfloat16 by its definition
    given = save(tmp_path, halves.view("V2"))
    assert infer(general, "identity_bf16", "--input", f"IN={given}", "--save", tmp_path)[0] == 0
    back = numpy.load(tmp_path / "OUT.npy")
    numpy.testing.assert_array_equal(back, (halves.astype(numpy.uint32) << 16).view(numpy.float32))


def test_it_answers_as_tritonclient_does(general, tmp_path):
    arrays = {name: RNG.integers(-9, 9, (2, 16)).astype(numpy.int32) for name in ("INPUT0", "INPUT1")}
    words = [word for name, array in arrays.items() for word in ("--input", f"{name}={save(tmp_path, array, name)}")]
    status, _, error = infer(general, "--save", tmp_path, *words, "simple")
    assert status == 0, error
    client = clients.Client("http", general.address("http"))
    expected = client.infer("simple", arrays).arrays
    client.close()
    assert set(expected) == {"OUTPUT0", "OUTPUT1"}
    for name, array in expected.items():
        numpy.testing.assert_array_equal(numpy.load(tmp_path / f"{name}.npy"), array)


@pytest.mark.parametrize("place", ["text", "file", "stdin"])
def test_named_arrays_are_taken_from_everywhere(general, tmp_path, place):
    text = json.dumps({"X": [[[1, 2], [3, 4]]]})
    (tmp_path / "inputs.json").write_text(text)
    word = {"text": text, "file": tmp_path / "inputs.json", "stdin": "-"}[place]
    status, out, error = infer(general, "dynamic", "--json", word, stdin=text if place == "stdin" else "")
    assert status == 0, error
    assert out == "dynamic, version 1\nY  FP32 [1,2,2]\n    3, 5, 7, 9\n"


def test_a_whole_request_goes_as_it_is(general, tmp_path):
    body = {"id": "mine", "inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 1, 2], "data": [1, 2]}]}
    status, out, error = infer(general, "dynamic", "--json", json.dumps(body), "--output", "json")
    assert status == 0, error
    assert json.loads(out) == general.infer("dynamic", body).json()
    assert json.loads(out)["id"] == "mine"
    body["parameters"] = {"binary_data_output": True}
    status, out, error = infer(general, "dynamic", "--json", json.dumps(body), "--save", tmp_path)
    assert status == 0 and "    3, 5\n" in out, error
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "Y.npy"), [[[3, 5]]])


def test_json_is_the_servers_and_saves_too(general, tmp_path):
    status, out, error = infer(general, "dynamic", "--json", '{"X":[[[0.5]]]}', "--output", "json", "--save", tmp_path)
    assert status == 0, error
    assert json.loads(out)["outputs"] == [{"name": "Y", "datatype": "FP32", "shape": [1, 1, 1], "data": [2.0]}]
    assert numpy.load(tmp_path / "Y.npy") == [[[2]]]


def test_inputs_are_made_up(general, tmp_path):
    status, out, error = infer(general, "simple", "--zeros")
    assert status == 0, error
    assert out.count("INT32 [1,16]\n    0, 0, 0, 0, 0, 0, 0, 0, ...\n") == 2
    status, out, error = infer(general, "dynamic", "--zeros", "--shape", "X=1,2,3")
    assert status == 0 and "Y  FP32 [1,2,3]\n    1, 1, 1, 1, 1, 1\n" in out, error + out
    seen = {infer(general, "dynamic", "--random", "--shape", "X=1,1,4", "--seed", seed)[1] for seed in (5, 5, 6)}
    assert len(seen) == 2
    for datatype in models.DATATYPES:
        for kind in ("--zeros", "--random"):
            assert infer(general, f"identity_{datatype.lower()}", kind)[0] == 0, (datatype, kind)
    given = save(tmp_path, numpy.full((1, 16), 7, numpy.int32))
    status, out, error = infer(general, "simple", "--input", f"INPUT0={given}", "--zeros")
    assert status == 0 and out.count("7, 7, 7, 7, 7, 7, 7, 7, ...") == 2, error


def test_scalars_and_values_that_json_lacks_are_shown(general, tmp_path):
    status, out, error = infer(general, "scalar", "--json", '{"IN": 2.5}')
    assert status == 0 and out.endswith("OUT  FP32 []\n    2.5\n"), error
    given = save(tmp_path, numpy.array([[numpy.nan, -numpy.inf]], numpy.float32))
    status, out, error = infer(general, "identity_fp32", "--input", f"IN={given}")
    assert status == 0 and out.endswith("    nan, -inf\n"), error


def test_a_version_is_chosen(general):
    for version, factor in ((1, 1), (2, 10)):
        status, out, error = infer(general, "versions", "--json", '{"X":[[1,2]]}', "--model-version", version)
        assert status == 0, error
        assert f"version {version}\n" in out and f"    {factor}, {2 * factor}\n" in out
    assert "version 3\n" in infer(general, "versions", "--zeros")[1]
    refused(general, "versions", "--zeros", "--model-version", 9, status=1, said="status 404: ")


def test_large_requests_and_answers_pass(general, tmp_path):
    array = RNG.random((1, 2_000_000), dtype=numpy.float32)
    status, _, error = infer(general, "identity_fp32", "--input", f"IN={save(tmp_path, array)}", "--save", tmp_path)
    assert status == 0, error
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "OUT.npy"), array)


@pytest.mark.parametrize("words, status, said", [
    (["ghost", "--zeros"], 1, "status 404: "),
    (["simple"], 1, "status 400: "),
    (["simple", "--json", '{"INPUT0": [[1]], "INPUT1": [[1]]}'], 1, "status 400: "),
    (["simple", "--json", '{"OTHER": [1]}'], 2, 'no input "OTHER"'),
    (["simple", "--json", '{"INPUT0": [[1], [2, 3]]}'], 2, 'input "INPUT0"'),
    (["simple", "--json", '{"INPUT0": [2147483648]}'], 2, 'input "INPUT0"'),
    (["simple", "--json", '{"INPUT0": '], 2, "--json: "),
    (["simple", "--json", "nowhere.json"], 2, '"nowhere.json" cannot be opened'),
    (["simple", "--json", "/"], 2, '"/" cannot be read'),
    (["simple", "--json", '{"inputs": []}', "--zeros"], 2, "no other inputs"),
    (["simple", "--json", '{"inputs": []}'], 1, "status 400: "),
    (["simple", "--input", "INPUT0"], 2, "no input such as"),
    (["simple", "--input", "INPUT0=nowhere.npy"], 2, '"nowhere.npy" cannot be opened'),
    (["simple", "--shape", "INPUT0=1,16"], 2, "--shape is for"),
    (["simple", "--zeros", "--shape", "Z=1"], 2, "no input"),
    (["simple", "--zeros", "--shape", "INPUT0=1000000,1000000"], 2, "above 1 GiB"),
    (["simple", "--zeros", "--save", "/dev/null/x"], 1, "cannot be made")])
def test_what_cannot_be_done_is_said(general, words, status, said):
    if "--save" in words:  # the outputs have been printed
        ended, _, error = infer(general, *words)
        assert ended == status and said in error, error
    else:
        refused(general, *words, status=status, said=said)


@pytest.mark.parametrize("array, said", [
    (numpy.asfortranarray(numpy.ones((2, 16), numpy.int32)), "Fortran order"),
    (numpy.array([{}, None]), "Python objects"),
    (numpy.ones((1, 16), ">i4"), "big-endian"),
    (numpy.ones((1, 16), numpy.int64), "holds INT64, the input \"INPUT0\" takes INT32"),
    (numpy.zeros(3, [("a", "<i4")]), "structures"),
    (numpy.ones(2, numpy.complex64), "no type")], ids=["fortran", "object", "big", "type", "fields", "complex"])
def test_an_array_that_is_none_of_the_protocols_is_said(general, tmp_path, array, said):
    refused(general, "simple", "--input", f"INPUT0={save(tmp_path, array)}", status=2, said=said)


def test_an_input_is_given_once(general, tmp_path):
    given = save(tmp_path, numpy.ones((1, 16), numpy.int32))
    refused(general, "simple", "--json", '{"INPUT0": [[1]]}', "--input", f"INPUT0={given}", status=2, said="twice")


def test_bytes_that_numpy_would_change_are_not_saved(general, tmp_path):
    status, _, error = infer(general, "identity_bytes", "--json", '{"IN": [["a\\u0000"]]}', "--save", tmp_path)
    assert status == 1 and "ends in NUL" in error, error


def test_who_is_not_there_is_said():
    with socket.socket() as silent:  # holds a port that nobody listens on
        silent.bind((server.HOST, 0))
        place = f"{server.HOST}:{silent.getsockname()[1]}"
        refused(None, "simple", "--zeros", "--url", place, status=1, said=f"no baton answers on {place}")
    refused(None, "simple", "--zeros", "--url", "nowhere", status=2, said='"nowhere" is no address')
    status, _, error = infer(None, "simple", "--zeros", "--random")
    assert status == 2 and "excludes" in error, error


def test_a_key_is_sent_where_one_is_wanted(make_server, tmp_path):
    models.write_simple(tmp_path / "models")
    (tmp_path / "keys").write_text("first-key team-a\n")
    (tmp_path / "baton.yaml").write_text(f"version: 1\napi_keys_file: '{tmp_path / 'keys'}'\n")
    running = make_server(tmp_path / "models", arguments=["-c", tmp_path / "baton.yaml"])
    refused(running, "simple", "--zeros", status=1, said="status 401: ")
    assert infer(running, "simple", "--zeros", "--api-key", "first-key")[0] == 0
    assert infer(running, "simple", "--zeros", environment={"BATON_API_KEY": "first-key"})[0] == 0
