"""`baton bench` against a served model: every kind of arrivals, both protocols, both forms of report."""

import json
import re
import subprocess

import pytest

from harness import models, server

ROWS = "arrival_s\n" + "".join(f"{number * 0.004:.3f}\n" for number in range(500))  # 250 a second for 2 s


@pytest.fixture(scope="module", name="served")
def serve(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benched")
    models.write_simple(folder)
    models.write(folder, "dynamic", models.affine([-1, -1]))
    models.write(folder, "slow", models.slow(models.rounds_for(0.2)))
    with server.Server(folder, folder=tmp_path_factory.mktemp("benched-server")) as running:
        yield running.wait_ready()


def bench(*words):
    ended = subprocess.run([str(word) for word in (server.binary(), *words)], capture_output=True, text=True,
                           timeout=60, check=False)
    return ended.returncode, ended.stdout, ended.stderr


def target(served, protocol):
    return ["--grpc", served.address("grpc")] if protocol == "grpc" else ["--url", served.address("http")]


@pytest.fixture(name="arrivals", params=["constant", "poisson", "trace"])
def arrivals_words(request, tmp_path):
    if request.param != "trace":
        return request.param, ["--arrivals", request.param, "--rate", 250]
    (tmp_path / "trace.csv").write_text(ROWS)
    return request.param, ["--arrivals", tmp_path / "trace.csv"]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_json_tells_what_the_server_counts(served, protocol, arrivals):
    kind, words = arrivals
    before = served.metric("nv_inference_request_success", model="simple")
    status, out, error = bench("bench", "simple", *target(served, protocol), *words, "--duration", "1.5s",
                               "--warmup", "500ms", "--objective", "200ms", "--output", "json")
    assert status == 0, error + out
    report = json.loads(out)
    assert report["protocol"] == protocol and report["model"] == "simple" and report["failed"] == 0
    assert report["planned"] == report["answered"]
    counted = served.metric("nv_inference_request_success", model="simple") - before
    assert counted == pytest.approx(500, abs=0 if kind == "trace" else 90)  # the warm-up's included
    assert report["planned"] == pytest.approx(375, abs=1 if kind == "trace" else 80)
    if kind == "constant":
        assert report["planned"] == pytest.approx(375, abs=1)
    latency = report["latency_ms"]
    assert 0 < latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["max"]
    assert report["within_objective"] <= report["answered"] == sum(bar["count"] for bar in report["histogram"])


@pytest.mark.parametrize("protocol, name", [("http", "HTTP"), ("grpc", "gRPC")])
def test_text_tells_the_same_to_people(served, protocol, name, arrivals):
    status, out, error = bench("bench", "simple", *target(served, protocol), *arrivals[1], "--duration", "500ms",
                               "--warmup", "100ms", "--objective", "200ms")
    assert status == 0, error + out
    assert f"over {name}" in out.splitlines()[0]
    assert re.search(r"^answered \d+ \([\d.]+ a second\), failed 0$", out, re.MULTILINE), out
    for words in ("latency from the intended send, ms: p50", "goodput within 200 ms", "sent late by, ms"):
        assert words in out, out


def test_a_seed_gives_the_same_schedule(served):
    planned = set()
    for _ in range(2):
        status, out, _ = bench("bench", "simple", *target(served, "http"), "--seed", 5, "--duration", "500ms",
                               "--warmup", "0s", "--output", "json")
        assert status == 0
        planned.add(json.loads(out)["planned"])
    assert len(planned) == 1


def test_an_open_shape_is_closed_as_asked(served):
    before = served.metric("nv_inference_count", model="dynamic")
    status, out, _ = bench("bench", "dynamic", *target(served, "http"), "--shape", "X=3,5", "--rate", 50,
                           "--arrivals", "constant", "--duration", "400ms", "--warmup", "0s", "--output", "json")
    assert status == 0, out
    assert served.metric("nv_inference_count", model="dynamic") - before == 3 * json.loads(out)["answered"]


def test_requests_that_fail_are_told_by_status(served):
    # 100 a second of 0.2 s each with two outstanding: most are not sent, and count as failed
    status, out, _ = bench("bench", "slow", *target(served, "http"), "--rate", 100, "--outstanding", 2,
                           "--duration", "500ms", "--warmup", "0s", "--output", "json")
    report = json.loads(out)
    assert status == 1 and report["failed"] > 20 and report["failed"] == sum(report["failures"].values())
    assert report["answered"] + report["failed"] == report["planned"]


@pytest.mark.parametrize("words, said, expected", [
    (["bench", "ghost"], "ghost", 1),
    (["bench", "simple", "--shape", "X"], "no shape", 2),
    (["bench", "simple", "--shape", "Z=1"], "no input", 2),
    (["bench", "simple", "--arrivals", "sometimes"], "constant, poisson or a readable CSV file", 2)])
def test_what_cannot_be_sent_is_said(served, words, said, expected):
    status, _, error = bench(*words, *target(served, "http"))
    assert status == expected and said in error, error


def test_an_address_that_is_none_is_said():
    status, _, error = bench("bench", "simple", "--url", "nowhere")
    assert status == 2 and '"nowhere" is no address' in error, error
