"""The decision log of a live server, decided again: every decision comes out the same, byte for byte."""

import collections
import json
import random
import subprocess
import threading

import pytest

from harness import load, models, raw_http, server

PAIR = raw_http.infer_body([("INPUT0", "INT32", [1, 16], list(range(16))), ("INPUT1", "INT32", [1, 16], [1] * 16)])


def replay(path, *words):
    ended = subprocess.run([server.binary(), *words, "sim", "replay", path], capture_output=True, text=True,
                           timeout=120, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def mixed_clients(running, stop):
    """Requests of several shapes, sizes, deadlines and models, some of whose clients go away."""
    chance = random.Random(1)

    def once():
        rows = chance.randint(1, 3)
        width = chance.choice([2, 3])
        body = raw_http.infer_body([("X", "FP32", [rows, 1, width], [1.0] * rows * width)])
        headers = [("X-Request-Timeout-Ms", chance.choice([1, 20, 1000]))] if chance.random() < 0.5 else []
        with raw_http.Connection(running.ports["http"]) as connection:
            connection.send(raw_http.post("/v2/models/dynamic/infer", body, headers))
            if chance.random() < 0.8:
                connection.read()

    def slow():
        body = raw_http.infer_body([("X", "FP32", [1, 4], [1.0] * 4)])
        with raw_http.Connection(running.ports["http"]) as connection:
            connection.send(raw_http.post("/v2/models/slow/infer", body, [("X-Request-Timeout-Ms", 60)]))
            if chance.random() < 0.7:
                connection.read()

    def go(what):
        while not stop.is_set():
            what()
    return [threading.Thread(target=go, args=(what,)) for what in (once, once, slow, slow, slow)]


@pytest.fixture(scope="module", name="recorded")
def record(tmp_path_factory):
    """(the log, the server's own counters) of a loaded server that has ended."""
    folder = tmp_path_factory.mktemp("recorded")
    log = folder / "decisions.jsonl"
    models.write_simple(folder / "models")
    models.write(folder / "models", "dynamic", models.affine([-1, -1, -1]),
                 models.batching_config(8, "dynamic_batching { max_queue_delay_microseconds: 2000 }"))
    models.write(folder / "models", "slow", models.slow(models.rounds_for(0.05)),
                 "max_batch_size: 4\ninstance_group { count: 2 }\n"
                 "dynamic_batching { default_queue_policy { max_queue_size: 2 } }")
    (folder / "baton.yaml").write_text(f"version: 1\nlog: {{ decisions: '{log}' }}\nlimits: {{ in_flight: 8 }}\n")
    with server.Server(folder / "models", folder=folder / "server",
                       arguments=["-c", folder / "baton.yaml"]) as running:
        running.wait_ready()
        stop = threading.Event()
        threads = mixed_clients(running, stop)
        for thread in threads:
            thread.start()
        with load.Load(running.ports["http"], raw_http.post("/v2/models/simple/infer", PAIR), rate=500,
                       connections=16) as generator:
            server.wait_for(lambda: len(generator.outcomes) > 2500, 60, "load")
        stop.set()
        for thread in threads:
            thread.join(30)
        counted = {"done": running.metric("baton_requests_total", end_reason="ok"),
                   "overloaded": running.metric("baton_requests_total", end_reason="overloaded"),
                   "missed": running.metric("baton_decision_records_missed_total"),
                   "dropped": running.metric("baton_log_lines_dropped_total", log="decisions")}
    return log, counted


def test_a_live_log_replays_byte_for_byte(recorded):
    log, counted = recorded
    assert counted["missed"] == 0 and counted["dropped"] == 0
    status, said = replay(log, "--output", "json")
    assert status == 0, said
    result = json.loads(said)
    decisions = [line for line in lines_of(log) if "seq" in line]
    assert result["equal"] and result["complete"]
    assert result["decisions"] == len(decisions) > 5000
    assert {part["name"] for part in result["parts"]} >= {"simple/1", "dynamic/1", "slow/1"}


def test_the_log_agrees_with_what_the_server_counted(recorded):
    log, counted = recorded
    kinds = collections.Counter((line["kind"], line["reason"]) for line in lines_of(log) if "seq" in line)
    admitted = sum(count for (kind, _), count in kinds.items() if kind == "admit")
    left = sum(count for (kind, _), count in kinds.items() if kind in ("expire", "cancel"))
    assert admitted - left == counted["done"]
    assert kinds["refuse", "in_flight_limit"] == counted["overloaded"] > 0
    for seen in (("form_batch", "batch_full"), ("expire", "queue_deadline"), ("refuse", "level_limit")):
        assert kinds[seen] > 0, kinds
    assert kinds["cancel", "client_gone"] > 0, kinds


def test_a_changed_byte_is_found(recorded, tmp_path):
    text = recorded[0].read_text()
    at = text.index('"kind":"form_batch"', len(text) // 2)
    at = text.index('"items":', at) + 8
    changed = tmp_path / "changed.jsonl"
    changed.write_text(text[:at] + ("8" if text[at] == "9" else "9") + text[at + 1:])
    status, said = replay(changed)
    assert status == 1 and f"DIFFERS at line {text[:at].count(chr(10)) + 1}" in said, said


def test_missing_records_are_said(recorded, tmp_path):
    lines = recorded[0].read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if '"in":"submit"' in line and number > len(lines) // 2)
    lines[at] = '{"dropped_lines":1}\n'
    cut = tmp_path / "cut.jsonl"
    cut.write_text("".join(lines))
    status, said = replay(cut)
    assert status == 3 and f"INCOMPLETE: line {at + 1}: 1 lines of the log were lost here" in said, said


def test_what_is_no_decision_log_is_said(tmp_path):
    wrong = tmp_path / "wrong"
    wrong.write_text("hello\n")
    for path in (wrong, tmp_path / "nowhere"):
        status, said = replay(path)
        assert status == 2 and str(path) in said, said


def test_a_simulated_run_writes_the_same_log(tmp_path):
    log = tmp_path / "sim.jsonl"
    run = [server.binary(), "sim", "run", "--scenario", "mixed", "--duration", "2s", "--decisions", log]
    subprocess.run(run, capture_output=True, timeout=60, check=True)
    status, said = replay(log)
    assert status == 0 and "equal: " in said, said
