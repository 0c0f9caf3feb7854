"""The repository while serving: load, unload and reload by clients and by polling; what served before serves on."""

import base64
import json
import shutil
import subprocess
import time

import pytest
from tritonclient.utils import InferenceServerException

from harness import load, models, raw_http, repository, server
from harness.repository import ask, index

FIXED = (1, 4)


def affine(factor):
    """Y = X * factor: a model file that shows which one answers."""
    return models.affine(FIXED, factor, 0.0)


def write_affine(folder, name="m", factor=1.0, version=1, config=None):
    return models.write(folder, name, affine(factor), config, (version,))


def large():
    """A file of 4.8 MB."""
    return models.model([models.helper.make_node("Add", ["X", "c"], ["Y"])], [models.value("X", "FP32", [4])],
                        [models.value("Y", "FP32", [300_000, 4])],
                        [models.constant("c", models.numpy.ones((300_000, 4), models.numpy.float32))])


def as_text(made):
    return base64.b64encode(made.SerializeToString()).decode()


def staged(folder):
    """What baton keeps there of files that a command brought."""
    return [entry for entry in folder.iterdir() if entry.name.startswith("baton-load")]


def configuration(path, text):
    path.write_text("version: 1\n" + text)
    return ["-c", path]


@pytest.fixture(name="explicit")
def serve_explicit(make_server, tmp_path):
    """A server on an empty repository whose clients say what is served: (server, repository's folder)."""
    folder = tmp_path / "models"
    folder.mkdir()

    def start(startup="[]", more=""):
        words = configuration(tmp_path / "baton.yaml",
                              f"repository: {{ control: explicit, startup_models: {startup} }}\n{more}")
        return make_server(folder, arguments=words)
    return start, folder


@pytest.fixture(name="polling")
def serve_polling(make_server, tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()

    def start(settle="300ms", every="50ms", ready=True):
        words = configuration(tmp_path / "baton.yaml", "repository: { control: poll, "
                              f"poll_every: {every}, settle: {settle} }}\n")
        return make_server(folder, arguments=words, ready=ready)
    return start, folder


# -- modes

def test_without_explicit_control_clients_load_nothing(make_server, tmp_path):
    write_affine(tmp_path / "models")
    running = make_server(tmp_path / "models")
    for answer in (repository.load(running, "m"), repository.unload(running, "m")):
        assert answer.status == 503 and "repository.control" in answer.json()["error"]
    assert ask(running, "m") == (200, 1.0)
    assert index(running) == {("m", "1"): ("READY", "")}


def test_explicit_control_starts_with_the_models_it_is_told(explicit):
    start, folder = explicit
    write_affine(folder, "wanted")
    write_affine(folder, "other")
    running = start("[ wanted ]")
    assert index(running) == {("wanted", "1"): ("READY", ""), ("other", ""): ("UNAVAILABLE", "not loaded")}
    assert index(running, ready=True) == {("wanted", "1"): ("READY", "")}
    assert ask(running, "wanted")[0] == 200 and ask(running, "other")[0] == 503


def test_a_star_starts_all_models(explicit):
    start, folder = explicit
    write_affine(folder, "a")
    write_affine(folder, "b")
    running = start('[ "*" ]')
    assert set(index(running, ready=True)) == {("a", "1"), ("b", "1")}


def test_flags_say_the_control_mode(make_server, tmp_path):
    write_affine(tmp_path / "models")
    running = make_server(tmp_path / "models", arguments=["--repository-control", "explicit", "--load-model", "m"])
    assert index(running) == {("m", "1"): ("READY", "")}


# -- load and unload

def test_a_model_is_loaded_and_unloaded(explicit):
    # server#7588: what is unloaded is not ready; the server is
    start, folder = explicit
    running = start()
    write_affine(folder)
    assert repository.load(running, "m").status == 200
    assert running.get("/v2/models/m/ready").status == 200 and ask(running, "m") == (200, 1.0)
    assert repository.unload(running, "m").status == 200
    assert running.get("/v2/models/m/ready").status == 503
    status, why = ask(running, "m")
    assert status == 503 and b"unloaded" in why
    assert running.get("/v2/health/ready").status == 200
    server.wait_for(lambda: index(running)[("m", "1")] == ("UNAVAILABLE", "unloaded"), 10, "an end of unloading")
    assert repository.unload(running, "m").status == 200  # again: nothing to do
    assert repository.load(running, "m").status == 200 and ask(running, "m") == (200, 1.0)


def test_what_cannot_be_loaded_says_so_each_time(explicit):
    # server#3802: the second load call repeats the error of the first
    start, folder = explicit
    running = start()
    models.write(folder, "broken", b"this is not a model")
    for _ in range(3):
        answer = repository.load(running, "broken")
        assert answer.status == 400 and "ONNX Runtime" in answer.json()["error"], answer.body
    state, reason = index(running)[("broken", "1")]
    assert state == "UNAVAILABLE" and "ONNX Runtime" in reason
    for name in ("ghost", "..", ".hidden", "a%2Fb", "%2e%2e"):
        answer = repository.load(running, name)
        assert answer.status == 400 and "no repository" in answer.json()["error"], (name, answer.body)
    assert not any(name in ("ghost", "..", ".hidden") for name, _ in index(running))
    answer = repository.unload(running, "ghost")
    assert answer.status == 400 and "never loaded" in answer.json()["error"]
    assert running.get("/v2/health/ready").status == 200
    write_affine(folder, "broken")
    assert repository.load(running, "broken").status == 200 and ask(running, "broken") == (200, 1.0)


def test_loading_another_model_does_not_change_the_servers_readiness(explicit):
    # server#7014, server#5940, U062, kserve#1791
    start, folder = explicit
    write_affine(folder, "serving")
    running = start("[ serving ]")
    models.write(folder, "big", models.slow(models.rounds_for(0.15)), models.batching_config(4))
    models.write(folder, "broken", b"nothing")
    seen = []
    with raw_http.Connection(running.ports["http"]) as connection:
        connection.send(raw_http.post("/v2/repository/models/big/load", b""))
        while not seen or index(running).get(("big", "1"), ("LOADING",))[0] == "LOADING":
            seen.append(running.get("/v2/health/ready").status)
        assert connection.read().status == 200
    assert set(seen) == {200} and len(seen) > 1
    assert repository.load(running, "broken").status == 400
    assert running.get("/v2/health/ready").status == 200
    assert repository.unload(running, "serving").status == 200
    assert running.get("/v2/health/ready").status == 200


def test_a_model_that_failed_at_the_start_holds_readiness_back_until_it_loads(explicit):
    # kserve#1791
    start, folder = explicit
    models.write(folder, "m", b"nothing")
    write_affine(folder, "fine")
    with pytest.raises(AssertionError):
        start('[ "*" ]')
    running = server.live[-1]
    assert running.get("/v2/health/ready").status == 503
    write_affine(folder, "m")
    assert repository.load(running, "m").status == 200
    assert running.get("/v2/health/ready").status == 200


def test_one_version_is_loaded_and_unloaded(explicit):
    # server#2853, server#4416, server#4638
    start, folder = explicit
    for version in (1, 2, 3):
        write_affine(folder, factor=float(version), version=version)
    running = start()
    assert repository.load(running, "m", version="2").status == 200
    assert ask(running, "m") == (200, 2.0)
    assert repository.load(running, "m", version=1).status == 200
    assert ask(running, "m") == (200, 2.0) and ask(running, "m", version=1) == (200, 1.0)
    assert repository.unload(running, "m", version=2).status == 200
    assert ask(running, "m") == (200, 1.0) and ask(running, "m", version=2)[0] == 503
    assert repository.load(running, "m").status == 200  # as the version policy says: the latest alone
    assert ask(running, "m") == (200, 3.0) and ask(running, "m", version=1)[0] == 503
    answer = repository.load(running, "m", version=9)
    assert answer.status == 400 and "version 9" in answer.json()["error"]
    for wrong in (0, -1, "x", "1x", 1.5, True, None, [1]):
        assert repository.load(running, "m", version=wrong).status == 400, wrong


def test_the_version_policy_holds_at_each_load(explicit):
    start, folder = explicit
    for version in (1, 2):
        write_affine(folder, factor=float(version), version=version)
    running = start("[ m ]")
    assert set(index(running, ready=True)) == {("m", "2")}
    (folder / "m" / "config.pbtxt").write_text("version_policy { all { } }\n")
    assert repository.load(running, "m").status == 200
    assert set(index(running, ready=True)) == {("m", "1"), ("m", "2")}
    (folder / "m" / "config.pbtxt").write_text("version_policy { specific { versions: [ 1 ] } }\n")
    assert repository.load(running, "m").status == 200
    assert set(index(running, ready=True)) == {("m", "1")} and ask(running, "m") == (200, 1.0)


# -- configuration and files that come with a load

def test_a_configuration_of_the_command_takes_the_place_of_the_files(explicit):
    start, folder = explicit
    models.write(folder, "m", models.affine([-1, 4], 1.0, 0.0), "max_batch_size: 2\n")
    running = start("[ m ]")

    def max_batch():
        return running.get("/v2/models/m/config").json()["max_batch_size"]
    assert max_batch() == 2
    for text in ('{"max_batch_size": 6}', '{"maxBatchSize": 7}'):
        assert repository.load(running, "m", config=text).status == 200
        assert max_batch() == json.loads(text).popitem()[1]
    for wrong in ("", "{", "[]", '{"max_batch_size": "x"}', '{"no_such_field": 1}', '{"name": "other"}',
                  '{"max_batch_size": -3}', '{"response_cache": {"enable": true}}', "[" * 150_000,
                  '{"parameters":' * 50_000):
        answer = repository.load(running, "m", config=wrong)
        assert answer.status == 400 and "config" in answer.json()["error"], (wrong[:40], answer.body)
        assert max_batch() == 7 and ask(running, "m") == (200, 1.0)
    assert repository.load(running, "m").status == 200 and max_batch() == 2


def test_files_of_the_command_take_the_place_of_the_folder(explicit, tmp_path, monkeypatch):
    start, folder = explicit
    kept = tmp_path / "private"
    kept.mkdir()
    monkeypatch.setenv("TMPDIR", str(kept))
    write_affine(folder)
    running = start("[ m ]")
    answer = repository.load(running, "m", config="{}", files={"7/model.onnx": as_text(affine(7.0))})
    assert answer.status == 200, answer.body
    assert ask(running, "m") == (200, 7.0) and set(index(running, ready=True)) == {("m", "7")}
    server.wait_for(lambda: not staged(kept), 5, "an end of the private folder")
    answer = repository.load(running, "fresh", config="{}", files={"1/model.onnx": as_text(affine(5.0))})
    assert answer.status == 200 and ask(running, "fresh") == (200, 5.0)
    answer = repository.load(running, "fresh", config="{}", files={"1/model.onnx": as_text(large())})
    assert answer.status == 200, answer.body
    assert repository.load(running, "m").status == 200 and ask(running, "m") == (200, 1.0)
    server.wait_for(lambda: not staged(kept), 5, "an end of the private folder")


def test_wrong_files_are_refused_and_leave_nothing(explicit, tmp_path, monkeypatch):
    start, folder = explicit
    kept = tmp_path / "private"
    kept.mkdir()
    monkeypatch.setenv("TMPDIR", str(kept))
    write_affine(folder)
    running = start("[ m ]")
    good = as_text(affine(2.0))
    for name in ("../1/model.onnx", "/etc/passwd", "1/../../x", "1", "1/", "x/model.onnx", "01/model.onnx", "",
                 "1/./model.onnx", "1//model.onnx", "0/model.onnx", "-1/model.onnx", "1/a\0b"):
        answer = repository.load(running, "m", config="{}", files={name: good})
        assert answer.status == 400, (name, answer.body)
    for text in ("=", "abc", "ab=c", "a===", "AAAA\n", "@@@@", "QQ=A", "QR=="):
        answer = repository.load(running, "m", config="{}", files={"1/model.onnx": text})
        assert answer.status == 400 and "base64" in answer.json()["error"], (text, answer.body)
    assert repository.load(running, "m", files={"1/model.onnx": good}).status == 400  # no config
    assert repository.load(running, "m", config="{}", files={"1/model.onnx": "AAAA"}).status == 400
    assert repository.load(running, "m", config="{}", files={"1/other": good}).status == 400
    assert repository.load(running, "m", unknown="x").status == 400
    assert repository.load(running, "m", config=5).status == 400
    assert ask(running, "m") == (200, 1.0)
    server.wait_for(lambda: not staged(kept), 5, "an end of the private folder")
    assert not (tmp_path / "1").exists() and not (kept.parent / "model.onnx").exists()


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"parameters":1}', b'{"parameters":{"config":1}}', b"\xff", b"null",
                                  b'{"parameters":{"config":"{}","config":"{}"}}', b"[" * 100_000])
def test_a_body_that_is_no_command_is_a_clear_400(explicit, body):
    start, folder = explicit
    write_affine(folder)
    running = start("[ m ]")
    for path in ("index", "models/m/load", "models/m/unload"):
        answer = running.request(f"/v2/repository/{path}", method="POST", body=body)
        if path == "index" and body.startswith(b'{"parameters"'):
            continue
        assert answer.status in (200, 400) and (answer.status == 400 or path != "models/m/load"), (path, answer.body)
    for path in ("index", "models/m/load", "models/m/unload"):
        assert running.get(f"/v2/repository/{path}").status == 405
    for path in ("", "models", "models/m", "models/m/other", "models//load", "a/b/index"):
        assert running.request(f"/v2/repository/{path}", method="POST", body=b"").status == 404, path
    assert running.request("/v2/repository/elsewhere/index", method="POST", body=b"").status == 501
    assert running.request("/v2/repository/elsewhere/models/m/load", method="POST", body=b"").status == 501


# -- reload

def test_a_reload_is_seamless_and_a_failed_one_leaves_the_old_serving(explicit):
    # server#2076, server#2578, server#5757
    start, folder = explicit
    write_affine(folder)
    running = start("[ m ]")
    models.write(folder, "m", b"broken")
    for _ in range(2):
        answer = repository.load(running, "m")
        assert answer.status == 400 and "ONNX Runtime" in answer.json()["error"]
        assert ask(running, "m") == (200, 1.0)
        state, reason = index(running)[("m", "1")]
        assert state == "READY" and "reload failed" in reason
    write_affine(folder, factor=3.0)
    assert repository.load(running, "m").status == 200
    assert ask(running, "m") == (200, 3.0) and index(running)[("m", "1")] == ("READY", "")
    (folder / "m" / "config.pbtxt").write_text("max_batch_size: [")
    assert repository.load(running, "m").status == 400 and ask(running, "m") == (200, 3.0)

    def executions():
        found = running.get("/models", protocol="metrics").json()
        return [version["executions"] for model in found for version in model["versions"]]
    before = executions()
    assert before[0] > 0
    (folder / "m" / "config.pbtxt").unlink()
    assert repository.load(running, "m").status == 200  # nothing changed: nothing to do
    assert executions() == before


def test_counters_survive_a_reload(explicit):
    start, folder = explicit
    write_affine(folder)
    running = start("[ m ]")
    for factor in (2.0, 3.0):
        for _ in range(5):
            assert ask(running, "m")[0] == 200
        write_affine(folder, factor=factor)
        assert repository.load(running, "m").status == 200
    assert repository.unload(running, "m").status == 200
    assert running.metric("nv_inference_exec_count", model="m") == 10
    assert running.metric("nv_inference_request_success", model="m") == 10


def test_what_runs_when_it_is_unloaded_is_answered(explicit):
    start, folder = explicit
    models.write(folder, "slow", models.slow(models.rounds_for(0.4), dims=(1, 4)))
    running = start("[ slow ]")
    request = raw_http.post("/v2/models/slow/infer", raw_http.infer_body([("X", "FP32", [1, 4], [1.0] * 4)]))
    with raw_http.Connection(running.ports["http"]) as first, raw_http.Connection(running.ports["http"]) as second:
        first.send(request)
        second.send(request)
        server.wait_for(lambda: running.metric("inference_requests_in_flight", model="slow") == 2, 10, "both")
        assert repository.unload(running, "slow").status == 200
        assert index(running)[("slow", "1")][0] == "UNLOADING"
        assert first.read().status == 200 and second.read().status == 200
    server.wait_for(lambda: index(running)[("slow", "1")][0] == "UNAVAILABLE", 10, "its end")


def test_the_decision_log_of_a_reloaded_model_is_decided_again(explicit, tmp_path):
    start, folder = explicit
    write_affine(folder)
    running = start("[ m ]", f"log: {{ decisions: {tmp_path / 'decisions.log'} }}\n")
    for factor in (2.0, 3.0):
        assert ask(running, "m")[0] == 200
        write_affine(folder, factor=factor)
        assert repository.load(running, "m").status == 200
    assert ask(running, "m") == (200, 3.0)
    running.terminate()
    assert running.wait_exit() == 0
    found = subprocess.run([server.binary(), "sim", "replay", tmp_path / "decisions.log"],
                           capture_output=True, text=True)
    assert found.returncode == 0, found.stdout
    assert "m/1 load 3:" in found.stdout


# -- under load

def test_no_request_fails_while_models_are_loaded_reloaded_and_unloaded(explicit):
    # server#2076, server#2578, server#5757
    start, folder = explicit
    models.write_simple(folder)
    write_affine(folder, "other")
    running = start("[ simple ]")
    pair = raw_http.infer_body([("INPUT0", "INT32", [1, 16], list(range(16))), ("INPUT1", "INT32", [1, 16], [1] * 16)])
    request = raw_http.post("/v2/models/simple/infer", pair)
    with load.Load(running.ports["http"], request, rate=600, connections=24) as generator:
        server.wait_for(lambda: len(generator.outcomes) > 300, 20, "load")
        for number in range(8):
            (folder / "simple" / "1" / "note").write_text(str(number) * (number + 1))  # a changed folder
            assert repository.load(running, "simple").status == 200
            write_affine(folder, "other", float(number))
            assert repository.load(running, "other").status == 200
            assert ask(running, "other") == (200, float(number))
            assert repository.unload(running, "other").status == 200
        server.wait_for(lambda: len(generator.outcomes) > 2500, 30, "load after it")
        generator.stop()
    assert generator.failed() == []
    server.wait_for(lambda: running.log().count("simple version 1 is ready, reloaded") == 8, 5, "lines in the log")
    rate = len(generator.outcomes) / (generator.outcomes[-1].intended - generator.outcomes[0].intended)
    assert rate >= 500 and generator.opened >= 20


def instances(running, model):
    return running.get(f"/v2/models/{model}/config").json()["instance_group"][0]["count"]


def test_another_number_of_instances_is_applied_in_place_under_load(explicit):
    start, folder = explicit
    models.write_simple(folder)
    running = start("[ simple ]")
    config = folder / "simple" / "config.pbtxt"
    text = config.read_text()
    pair = raw_http.infer_body([("INPUT0", "INT32", [1, 16], list(range(16))), ("INPUT1", "INT32", [1, 16], [1] * 16)])
    request = raw_http.post("/v2/models/simple/infer", pair)
    with load.Load(running.ports["http"], request, rate=600, connections=24) as generator:
        server.wait_for(lambda: len(generator.outcomes) > 300, 20, "load")
        for count in (4, 1, 3, 2, 4, 1) * 2:
            config.write_text(text + f"instance_group [ {{ count: {count} kind: KIND_CPU }} ]\n")
            assert repository.load(running, "simple").status == 200
            assert instances(running, "simple") == count
            server.wait_for(lambda: repository.instance_threads(running, "simple") == count, 5, f"{count} threads")
        server.wait_for(lambda: len(generator.outcomes) > 1500, 30, "load after it")
        generator.stop()
    assert generator.failed() == []
    assert "reloaded" not in running.log()
    config.write_text(text + "instance_group [ { count: 100000 kind: KIND_CPU } ]\n")
    assert repository.load(running, "simple").status == 400 and instances(running, "simple") == 1


def test_the_decision_log_of_a_scaled_model_is_decided_again(explicit, tmp_path):
    start, folder = explicit
    models.write_simple(folder)
    running = start("[ simple ]", f"log: {{ decisions: {tmp_path / 'decisions.log'} }}\n")
    text = (folder / "simple" / "config.pbtxt").read_text()
    pair = raw_http.infer_body([("INPUT0", "INT32", [1, 16], list(range(16))), ("INPUT1", "INT32", [1, 16], [1] * 16)])
    request = raw_http.post("/v2/models/simple/infer", pair)
    with load.Load(running.ports["http"], request, rate=300, connections=12) as generator:
        for count in (3, 1, 2):
            (folder / "simple" / "config.pbtxt").write_text(text + f"instance_group [ {{ count: {count} }} ]\n")
            assert repository.load(running, "simple").status == 200
        server.wait_for(lambda: len(generator.outcomes) > 300, 20, "load")
        generator.stop()
    running.terminate()
    assert running.wait_exit() == 0
    assert '"in":"add_instance"' in (tmp_path / "decisions.log").read_text()
    found = subprocess.run([server.binary(), "sim", "replay", tmp_path / "decisions.log"],
                           capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def test_sigterm_during_a_load_ends_in_time_and_tells_the_client(explicit):
    # core#324
    start, folder = explicit
    running = start()
    models.write(folder, "big", models.slow(models.rounds_for(0.5)), models.batching_config(16))
    with raw_http.Connection(running.ports["http"]) as connection:
        connection.send(raw_http.post("/v2/repository/models/big/load", b""))
        server.wait_for(lambda: index(running).get(("big", "1"), ("",))[0] == "LOADING", 10, "loading")
        begun = time.monotonic()
        running.terminate()
        answer = connection.read()
        assert answer.status == 503 and "shutting down" in answer.json()["error"]
        assert running.wait_exit() == 0
    assert time.monotonic() - begun < 10


# -- polling

def test_polling_loads_reloads_and_unloads(polling):
    start, folder = polling
    write_affine(folder)
    running = start()
    assert ask(running, "m") == (200, 1.0)
    write_affine(folder, "new", 4.0)
    server.wait_for(lambda: ask(running, "new") == (200, 4.0), 20, "a new model")
    write_affine(folder, factor=2.0)
    server.wait_for(lambda: ask(running, "m") == (200, 2.0), 20, "the changed model")
    write_affine(folder, factor=9.0, version=5)
    server.wait_for(lambda: ask(running, "m") == (200, 9.0), 20, "the new version")
    assert ask(running, "m", version=1)[0] == 503
    shutil.rmtree(folder / "new")
    server.wait_for(lambda: ask(running, "new")[0] == 404, 20, "an end of what was removed")
    assert running.get("/v2/health/ready").status == 200
    answer = repository.load(running, "m")
    assert answer.status == 503 and "poll" in answer.json()["error"]


def test_a_folder_that_is_being_copied_is_not_loaded(polling):
    # server#6534, server#356, server#6571
    start, folder = polling
    running = start(settle="600ms")
    data = affine(6.0).SerializeToString()
    place = folder / "m" / "1"
    place.mkdir(parents=True)
    begun = time.monotonic()
    with open(place / "model.onnx", "wb", buffering=0) as out:
        for at in range(len(data)):
            out.write(data[at:at + 1])
            server.wait_for(lambda: time.monotonic() > begun + at * 2.0 / len(data), 5, "a slow copy")
            assert ask(running, "m")[0] in (404, 503)
    server.wait_for(lambda: ask(running, "m") == (200, 6.0), 20, "the whole model")
    assert "failed" not in running.log()


def test_a_model_that_failed_is_tried_again_when_its_folder_changes(polling):
    # server#6534
    start, folder = polling
    models.write(folder, "m", b"half a model")
    running = start(ready=False)
    server.wait_for(lambda: index(running).get(("m", "1"), ("",))[0] == "UNAVAILABLE", 20, "a failure")
    assert running.get("/v2/health/ready").status == 503
    write_affine(folder, factor=8.0)
    server.wait_for(lambda: ask(running, "m") == (200, 8.0), 20, "its load")
    assert running.get("/v2/health/ready").status == 200
    models.write(folder, "m", b"broken again")
    server.wait_for(lambda: "reload failed" in index(running)[("m", "1")][1], 20, "a failed reload")
    assert ask(running, "m") == (200, 8.0) and running.get("/v2/health/ready").status == 200


def test_what_editors_leave_is_no_change(polling):
    start, folder = polling
    write_affine(folder, config="max_batch_size: 0\n")
    write_affine(folder, "probe")
    running = start()
    for name in (".config.pbtxt.swp", "config.pbtxt~", "#config.pbtxt#", ".#config.pbtxt", "1/.model.onnx.part"):
        (folder / "m" / name).write_text("x")
    write_affine(folder, "probe", 2.0)
    server.wait_for(lambda: ask(running, "probe") == (200, 2.0), 20, "a change that counts")
    server.wait_for(lambda: "model probe version 1 is ready, reloaded" in running.log(), 5, "the line in the log")
    assert "model m version 1 is ready, reloaded" not in running.log()


# -- with the real client

@pytest.fixture(name="explicit_client", params=["http", "grpc"])
def connect_client(request, explicit):
    from conftest import connect
    start, folder = explicit
    running = start()
    made = connect(running, request.param)
    yield running, folder, made
    made.close()


def rows_of(client):
    found = client.call("get_model_repository_index")
    return {(row["name"], row.get("version", "")): row.get("state", "")
            for row in (found if isinstance(found, list) else found.get("models", []))}


def test_tritonclient_loads_and_unloads(explicit_client):
    running, folder, client = explicit_client
    write_affine(folder)
    assert rows_of(client) == {("m", ""): "UNAVAILABLE"}
    client.call("load_model", "m")
    assert client.call("is_model_ready", "m") and rows_of(client) == {("m", "1"): "READY"}
    client.call("load_model", "m", config='{"max_batch_size": 0}',
                files={"file:3/model.onnx": affine(3.0).SerializeToString()})
    assert ask(running, "m") == (200, 3.0)
    client.call("load_model", "big", config="{}", files={"file:1/model.onnx": large().SerializeToString()})
    assert client.call("is_model_ready", "big")
    client.call("unload_model", "m", unload_dependents=True)
    assert not client.call("is_model_ready", "m")
    with pytest.raises(InferenceServerException, match="no repository"):
        client.call("load_model", "ghost")
    with pytest.raises(InferenceServerException, match="never loaded"):
        client.call("unload_model", "ghost")
    with pytest.raises(InferenceServerException, match="config"):
        client.call("load_model", "m", files={"file:3/model.onnx": b"x"})


def test_tritonclient_hears_why_nothing_is_loaded(make_server, tmp_path):
    from conftest import connect
    write_affine(tmp_path / "models")
    running = make_server(tmp_path / "models")
    for flavour in ("http", "grpc"):
        client = connect(running, flavour)
        with pytest.raises(InferenceServerException) as told:
            client.call("load_model", "m")
        assert told.value.status() in ("503", "StatusCode.UNAVAILABLE")
        client.close()
