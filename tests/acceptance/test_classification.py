"""The classification extension by tritonclient, over every flavour, binary and JSON."""

import json

import numpy
import pytest
from onnx import helper
from tritonclient.utils import InferenceServerException

from harness import clients, models, raw_http, server

LABELS = ["zero", "", "zwei ✓"]
ROWS = numpy.array([[0.25, 4, -1, 4], [1e-9, -2, 0.5, 3]], numpy.float32)


def two_outputs():
    nodes = [helper.make_node("Identity", ["IN"], ["SCORES"]), helper.make_node("Neg", ["IN"], ["LOSSES"])]
    return models.model(nodes, [models.value("IN", "FP32", [-1, -1])],
                        [models.value(name, "FP32", [-1, -1]) for name in ("SCORES", "LOSSES")])


def config(labels):
    return (models.batching_config(8) + models.tensor_text("input", "IN", "FP32", [-1])
            + models.tensor_text("output", "SCORES", "FP32", [-1], f'label_filename: "{labels}"')
            + models.tensor_text("output", "LOSSES", "FP32", [-1]))


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classes")
    models.write(folder, "scores", two_outputs(), config("labels.txt"))
    (folder / "scores" / "labels.txt").write_text("\n".join(LABELS) + "\n")
    models.write(folder, "unlabelled", two_outputs(), config("labels/missing.txt"))
    models.write(folder, "outside", two_outputs(), config("../scores/labels.txt"))
    models.write(folder, "texts", models.identity("BYTES", [-1, 2]))
    models.write(folder, "flat", models.identity("INT64", [4]))
    with server.Server(folder, folder=tmp_path_factory.mktemp("classes-server")) as running:
        running.wait_settled(["scores", "unlabelled", "outside", "texts", "flat"])
        yield running


@pytest.fixture(params=[*clients.FLAVOURS, "http-json"])
def client(served, request):
    flavour = request.param.removesuffix("-json")
    made = clients.Client(flavour, served.address(flavour.split("-")[0]), request.param.endswith("-json"))
    yield made
    made.close()


def ask(client, model, arrays, classes):
    """`classes`: {output: how many, 0 for the tensor itself}."""
    outputs = [client.library.InferRequestedOutput(name, class_count=count,
                                                   **({"binary_data": not client.json} if client.http else {}))
               for name, count in classes.items()]
    return client.result(client.call("infer", model, client.inputs(arrays), outputs=outputs))


def texts(array):
    return [[item.decode() if isinstance(item, bytes) else item for item in row] for row in array]


def test_the_best_of_each_row_with_labels(client):
    found = ask(client, "scores", {"IN": ROWS}, {"SCORES": 3})
    assert found.datatypes == {"SCORES": "BYTES"}
    assert texts(found.arrays["SCORES"]) == [["4:1", "4:3", "0.25:0:zero"], ["3:3", "0.5:2:zwei ✓", "1e-09:0:zero"]]


def test_several_outputs_each_as_asked(client):
    found = ask(client, "scores", {"IN": ROWS}, {"LOSSES": 1, "SCORES": 0})
    assert texts(found.arrays["LOSSES"]) == [["1:2"], ["2:1"]]
    assert found.arrays["SCORES"].tobytes() == ROWS.tobytes()
    found = ask(client, "scores", {"IN": ROWS[:1]}, {"SCORES": 2, "LOSSES": 2})
    assert texts(found.arrays["SCORES"]) == [["4:1", "4:3"]]
    assert texts(found.arrays["LOSSES"]) == [["1:2", "-0.25:0"]]


def test_more_than_the_row_is_the_row(client):
    found = ask(client, "scores", {"IN": ROWS}, {"SCORES": 2**31 - 1})
    assert found.arrays["SCORES"].shape == (2, 4)


def test_a_model_without_a_batch_dimension(client):
    found = ask(client, "flat", {"IN": numpy.array([5, -(2**63), 2**63 - 1, 5])}, {"OUT": 3})
    assert texts([found.arrays["OUT"]]) == [["9223372036854775807:2", "5:0", "5:3"]]


def test_texts_have_no_classes_and_the_server_lives(client):
    values = numpy.array([[b"a", b"b"]], numpy.object_)
    with pytest.raises(InferenceServerException, match="BYTES") as error:
        ask(client, "texts", {"IN": values}, {"OUT": 1})
    assert error.value.status() in ("400", "StatusCode.INVALID_ARGUMENT")
    assert client.call("is_server_live")


def test_a_negative_count_is_invalid(client):
    with pytest.raises(InferenceServerException, match="positive integer") as error:
        ask(client, "scores", {"IN": ROWS}, {"SCORES": -1})
    assert error.value.status() in ("400", "StatusCode.INVALID_ARGUMENT")


@pytest.mark.parametrize("count", [0, -1, 1.5, "3", True, None, [1], 2**64])
def test_what_is_no_count_is_invalid(served, count):
    body = json.loads(raw_http.infer_body([("IN", "FP32", [1, 2], [1, 2])]))
    body["outputs"] = [{"name": "SCORES", "parameters": {"classification": count}}]
    answer = served.infer("scores", body)
    assert answer.status == 400 and "classification" in answer.json()["error"]


@pytest.mark.parametrize("model", ["unlabelled", "outside"])
def test_labels_that_cannot_be_read_fail_the_model(served, model):
    answer = served.infer(model, raw_http.infer_body([("IN", "FP32", [1, 2], [1, 2])]))
    assert answer.status == 503 and "label_filename" in answer.json()["error"]


def test_the_configuration_names_the_labels(served):
    outputs = served.get("/v2/models/scores/config").json()["output"]
    assert [item.get("label_filename", "") for item in outputs] == ["labels.txt", ""]
    assert "classification" in served.get("/v2").json()["extensions"]


def test_many_classes_count_against_the_answers_that_wait(make_server, tmp_path):
    models.write(tmp_path / "repository", "scores", two_outputs(), models.batching_config(8))
    settings = tmp_path / "baton.yaml"
    settings.write_text("version: 1\nlimits: {answer_bytes: 1MiB}\n")
    running = make_server(tmp_path / "repository", arguments=("--config", settings))
    body = json.loads(raw_http.infer_body([("IN", "FP32", [1, 100_000], list(range(100_000)))]))
    for count, status in ((10, 200), (100_000, 503)):
        body["outputs"] = [{"name": "SCORES", "parameters": {"classification": count}}]
        assert running.infer("scores", body).status == status
