"""The statistics extension by tritonclient: numbers of each stage and batch size, and what has none."""

import time

import numpy
import pytest
from tritonclient.utils import InferenceServerException

from harness import clients, models, server

STAGES = ("success", "fail", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss")
PAIR = {name: numpy.ones((1, 16), numpy.int32) for name in ("INPUT0", "INPUT1")}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("statistics")
    models.write_simple(folder)
    models.write_simple(folder, "idle")
    models.write(folder, "broken", models.identity("FP32", [-1, 4]), 'input [ { name: "no" } ]')
    with server.Server(folder, folder=tmp_path_factory.mktemp("statistics-server")) as running:
        running.wait_settled(["simple", "idle", "broken"])
        yield running


@pytest.fixture(params=clients.FLAVOURS)
def client(served, request):
    made = clients.Client(request.param, served.address(request.param.split("-")[0]))
    yield made
    made.close()


def number(value):
    return int(value or 0)


def statistics(client, *arguments):
    found = client.call("get_inference_statistics", *arguments)["model_stats"]
    for model in found:
        assert set(model["inference_stats"]) == set(STAGES)
    return {(model["name"], model["version"]): model for model in found}


def test_rows_runs_and_stages_grow_by_what_was_asked(client):
    before = statistics(client, "simple")["simple", "1"]
    started_ms = time.time() * 1000
    two = {name: numpy.ones((2, 16), numpy.int32) for name in PAIR}
    for arrays in (PAIR, two, two):
        client.infer("simple", arrays)
    with pytest.raises(InferenceServerException):
        client.infer("simple", {"INPUT0": PAIR["INPUT0"]})
    after = statistics(client, "simple", "1")["simple", "1"]

    def grown(*path):
        ends = []
        for found in (before, after):
            for key in path:
                found = found.get(key, {})
            ends.append(number(found or 0))
        return ends[1] - ends[0]
    assert grown("inference_count") == 5
    assert grown("execution_count") == 3
    for stage in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
        assert grown("inference_stats", stage, "count") == 3, stage
    assert grown("inference_stats", "fail", "count") == 1
    for stage in ("success", "fail", "compute_infer"):
        assert grown("inference_stats", stage, "ns") > 0, stage
    assert grown("inference_stats", "success", "ns") >= grown("inference_stats", "compute_infer", "ns")
    assert started_ms - 50 <= number(after["last_inference"]) <= time.time() * 1000 + 50

    def runs(found, rows):
        return sum(number(batch["compute_infer"].get("count")) for batch in found.get("batch_stats", [])
                   if number(batch["batch_size"]) == rows)
    assert runs(after, 1) - runs(before, 1) == 1
    assert runs(after, 2) - runs(before, 2) == 2


def test_all_models_that_are_ready_have_an_entry(client):
    found = statistics(client)
    assert set(found) == {("simple", "1"), ("idle", "1")}
    assert number(found["idle", "1"].get("last_inference")) == 0
    assert found["idle", "1"].get("batch_stats", []) == []


@pytest.mark.parametrize("arguments, status", [(("nothing",), "404"), (("simple", "9"), "404"), (("broken",), "400"),
                                               (("simple", "one"), "400")])
def test_what_has_no_statistics_says_so(client, arguments, status):
    grpc = {"404": "StatusCode.NOT_FOUND", "400": "StatusCode.INVALID_ARGUMENT"}
    with pytest.raises(InferenceServerException) as error:
        client.call("get_inference_statistics", *arguments)
    assert error.value.status() == (status if client.http else grpc[status])
    assert arguments[-1 if arguments[-1] == "one" else 0] in str(error.value) or "positive" in str(error.value)


def test_the_extension_is_named(client):
    assert "statistics" in client.call("get_server_metadata")["extensions"]


def test_the_numbers_are_those_of_the_metrics(served):
    found = served.get("/v2/models/simple/stats").json()["model_stats"][0]
    assert found["inference_count"] == served.metric("nv_inference_count", model="simple")
    assert found["execution_count"] == served.metric("nv_inference_exec_count", model="simple")
    assert served.get("/v2/models/stats").json()["model_stats"][0]["memory_usage"] == []
