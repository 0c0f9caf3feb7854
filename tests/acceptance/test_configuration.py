"""baton.yaml and the commands beside `serve`: what they accept, refuse by line, and print."""

import json
import pathlib
import re
import subprocess

import pytest

from harness import models, raw_http, server

PAIR = raw_http.infer_body([("INPUT0", "INT32", [1, 16], list(range(16))), ("INPUT1", "INT32", [1, 16], [1] * 16)])
OTHERS = "max_batch_size: 8\ninstance_group [ { kind: KIND_MODEL profile: [ 'a' ] } ]\nresponse_cache { enable: true }"


def baton(*words, **more):
    """Runs the binary to its end: (status, standard output, standard error)."""
    ended = subprocess.run([str(word) for word in (server.binary(), *words)], capture_output=True, text=True,
                           timeout=60, check=False, **more)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.fixture(scope="module", name="folder")
def make_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("configured")
    models.write_simple(folder)
    models.write(folder, "made_for_others", models.affine([-1, 4]), OTHERS)
    return folder


@pytest.fixture(name="configured")
def serve_configured(make_server, folder, tmp_path):
    """Starts a server with a configuration file: configured("unsupported: warn", ...)."""
    def start(text, ready=True, **more):
        path = tmp_path / "baton.yaml"
        path.write_text(f"version: 1\nrepositories: ['{folder}']\n{text}\n")
        return make_server(ready=ready, arguments=["-c", path], **more)
    return start


def test_fields_that_are_not_honoured_can_be_warned_about(configured):
    running = configured("unsupported: warn")
    assert running.infer("made_for_others", raw_http.infer_body([("X", "FP32", [1, 4], [1] * 4)])).status == 200
    warnings = [line for line in running.log().splitlines() if "made_for_others" in line and "WARN" in line]
    for field in ("instance_group.kind", "instance_group.profile", "response_cache"):
        assert any(field in line for line in warnings), warnings


def test_without_the_warning_the_model_fails_and_readiness_says_so(configured):
    running = configured("", ready=False)
    assert running.wait_settled(["made_for_others", "simple"])["made_for_others"]
    assert running.get("/readyz").status == 503


def test_only_required_models_decide_readiness(configured):
    # the readiness table: a model that is not required may fail
    running = configured("required_models: [simple]")
    assert running.get("/v2/models/made_for_others/ready").status == 503
    assert running.infer("simple", PAIR).status == 200


def test_a_required_model_that_is_nowhere_keeps_it_not_ready(configured):
    running = configured("required_models: [simple, missing]", ready=False)
    running.wait_settled(["simple"])
    answer = running.get("/readyz")
    assert answer.status == 503 and "missing" in answer.json()["error"]


def test_a_key_is_needed_where_keys_are_configured(configured, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("# our keys\nfirst-key team-a\n\nsecond-key team-b\n")
    running = configured(f"required_models: [simple]\napi_keys_file: '{keys}'")
    assert running.infer("simple", PAIR).status == 401
    assert running.infer("simple", PAIR, headers={"Authorization": "Bearer wrong"}).status == 401
    assert running.infer("simple", PAIR, headers={"Authorization": "Bearer #"}).status == 401
    assert running.get("/v2/models/simple").status == 401
    assert running.get("/v2/health/ready").status == 200, "probes have no key"
    assert running.infer("simple", PAIR, headers={"Authorization": "Bearer first-key"}).status == 200
    assert running.infer("simple", PAIR, headers={"X-API-Key": "second-key"}).status == 200
    server.wait_for(lambda: {"team-a", "team-b"} <= {line.get("tenant") for line in running.access_lines()}, 5,
                    "both tenants in the access log")
    assert "first-key" not in running.access_file.read_text() + running.log()


def test_pinned_instances_run_where_the_kernel_says(configured):
    running = configured("required_models: [simple]\nthreads: {pin_instances: true}")
    threads = [task for task in pathlib.Path(f"/proc/{running.process.pid}/task").iterdir()
               if (task / "comm").read_text().strip() == "simple#0"]
    allowed = re.search(r"^Cpus_allowed_list:\s+(\d+)$", (threads[0] / "status").read_text(), re.MULTILINE)
    assert allowed, "the thread may run on one CPU alone"
    assert f"instance thread simple#0 is pinned to CPU {allowed[1]}" in running.log()


def test_a_wrong_line_of_keys_is_refused_by_number(folder, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("first-key team-a\nsecond-key team b\n")
    path = tmp_path / "baton.yaml"
    path.write_text(f"version: 1\nrepositories: ['{folder}']\napi_keys_file: '{keys}'\n")
    status, _, error = baton("serve", "-c", path)
    assert status == 1 and f"{keys}:2: " in error and "second-key" not in error, error


def test_limits_are_configurable(configured):
    running = configured("required_models: [simple]\nlimits: { body: 1KiB, connections: 3 }")
    with raw_http.Connection(running.ports["http"]) as connection:
        answer = connection.ask(raw_http.post("/v2/models/simple/infer", PAIR + b" " * 1024))
        assert answer.status == 413 and "1024" in answer.json()["error"]
    server.wait_for(lambda: running.get("/livez").status == 200, 5, "room for a connection")
    held = [raw_http.Connection(running.ports["http"]) for _ in range(6)]
    assert held[-1].read().status == 503
    for connection in held:
        connection.close()


def test_the_default_deadline_is_configurable(make_server, tmp_path):
    models.write(tmp_path / "models", "slow", models.spin(224, (1, 4), 2))
    path = tmp_path / "baton.yaml"
    path.write_text(f"version: 1\nrepositories: ['{tmp_path / 'models'}']\nlimits: {{ timeout: 100ms }}\n")
    running = make_server(arguments=["-c", path])
    body = raw_http.infer_body([("X", "FP32", [1, 4], [1] * 4), ("ROUNDS", "INT64", [1, 1], [20_000])])
    answer = running.infer("slow", body)
    assert answer.status == 503 and answer.json()["reason"].startswith("deadline_")


def test_a_flag_beats_the_file_and_the_environment_expands(folder, make_server, tmp_path, monkeypatch):
    monkeypatch.setenv("TEST_MODELS", str(folder))
    path = tmp_path / "baton.yaml"
    path.write_text("version: 1\nrepositories: ['${TEST_MODELS}']\nrequired_models: ['${NOT_SET:-simple}']\n"
                    "listen: { http: 1 }\n")
    running = make_server(arguments=["-c", path])
    assert running.infer("simple", PAIR).status == 200


def test_curves_survive_a_restart(folder, make_server, tmp_path):
    arguments = ["--state-file", tmp_path / "state.db"]
    first = make_server(folder, ready=False, arguments=arguments)
    first.wait_settled(["simple"])
    assert first.infer("simple", PAIR).status == 200
    assert first.stop() == 0
    assert (tmp_path / "state.db").stat().st_size > 0
    second = make_server(folder, ready=False, arguments=arguments)
    second.wait_settled(["simple"])
    assert second.infer("simple", PAIR).status == 200


WRONG = {
    "unknown key": ("limts: { body: 1MiB }", ["line 3", "limts", "limits"]),
    "unknown nested key": ("limits:\n  bodi: 1MiB", ["line 4", "bodi", "body"]),
    "wrong type": ("listen: { http: eight }", ["line 3", "listen.http", "eight"]),
    "port beyond": ("listen: { http: 70000 }", ["line 3", "listen.http", "70000"]),
    "negative": ("limits: { connections: -1 }", ["line 3", "limits.connections"]),
    "wrong unit": ("shutdown: { lame_duck: 5 parsecs }", ["line 3", "shutdown.lame_duck", "parsecs"]),
    "wrong choice": ("unsupported: ignore", ["line 3", "unsupported", "refuse"]),
    "twice": ("state_file: a\nstate_file: b", ["line 4", "state_file"]),
    "no YAML": ("limits: [", ["baton.yaml:"]),
    "unset variable": ("state_file: '${SURELY_NOT_SET}'", ["line 3", "SURELY_NOT_SET"]),
}


@pytest.mark.parametrize("name", [name for name in WRONG])
def test_a_wrong_configuration_is_refused_by_line(folder, tmp_path, name):
    text, words = WRONG[name]
    path = tmp_path / "baton.yaml"
    path.write_text(f"version: 1\nrepositories: ['{folder}']\n{text}\n")
    for command in ("check", "serve"):
        status, _, error = baton(command, "-c", path)
        assert status != 0
        for word in words:
            place = word.replace("line ", "baton.yaml:") if word.startswith("line ") else word
            assert place in error or word in error, error


@pytest.mark.parametrize("words", [["--log-level", "loud"], ["--workers", "4000000"], ["--lame-duck-ms", "-5"],
                                   ["--http-port", "70000"], ["--drain-ms", "soon"]])
def test_a_flag_is_checked_like_the_file(folder, words):
    status, _, error = baton("serve", folder, *words)
    assert status == 2 and error.count("\n") == 1, error
    assert error.startswith(f"baton: {words[0]}: ") and words[1] in error, error


@pytest.mark.parametrize("text", ["", "repositories: [x]", "version: 2\nrepositories: [x]", "version: one", "- a"])
def test_a_configuration_begins_with_its_version(tmp_path, text):
    path = tmp_path / "baton.yaml"
    path.write_text(text + "\n")
    status, _, error = baton("check", "-c", path)
    assert status != 0 and "version" in error, error


# -- other commands


def test_check_says_which_models_would_load(folder):
    status, text, _ = baton("check", folder)
    assert status == 1 and "made_for_others" in text and "instance_group.kind" in text and "simple" in text
    status, text, _ = baton("--output", "json", "check", folder)
    found = {item["model"]: item["ok"] for item in json.loads(text)}
    assert status == 1 and found == {"made_for_others": False, "simple": True}


def test_check_refuses_what_serve_refuses(tmp_path):
    models.write(tmp_path / "models", "misnamed", models.affine([-1, 4]), "name: 'other'")
    models.write(tmp_path / "models", "sparse", models.affine([-1, 4]),
                 "version_policy { specific { versions: [ 1, 7 ] } }")
    path = tmp_path / "baton.yaml"
    path.write_text(f"version: 1\nrepositories: ['{tmp_path / 'models'}']\nrequired_models: [missing]\n")
    status, text, _ = baton("--output", "json", "check", "-c", path)
    problems = {item["model"]: item["problem"] for item in json.loads(text) if not item["ok"]}
    assert status == 1 and set(problems) == {"misnamed", "missing"}, text
    assert "other" in problems["misnamed"] and "no repository" in problems["missing"]
    assert "version 7 does not exist" in text


def test_models_lists_a_running_server(configured):
    running = configured("unsupported: warn")
    status, text, error = baton("--output", "json", "models", "--metrics-port", running.ports["metrics"])
    assert status == 0, error
    assert "simple" in text and "made_for_others" in text
    json.loads(text)
    status, text, _ = baton("models", "--metrics-port", running.ports["metrics"])
    assert status == 0 and "simple" in text and "ready" in text.lower()


def test_models_without_a_server_says_so():
    status, _, error = baton("models", "--metrics-port", 1)
    assert status != 0 and "127.0.0.1:1" in error


@pytest.mark.parametrize("words", [["--help"], ["serve", "--help"], ["check", "--help"], ["models", "--help"],
                                   ["version", "--help"], ["config", "--help"]])
def test_help_is_everywhere(words):
    status, text, _ = baton(*words)
    assert status == 0 and "Usage" in text


def test_version():
    status, text, _ = baton("version")
    assert status == 0 and text.startswith("baton ")


def test_the_schema_is_json_and_knows_the_keys():
    status, text, _ = baton("config", "schema")
    schema = json.loads(text)
    assert status == 0 and schema["additionalProperties"] is False
    assert {"repositories", "listen", "limits", "shutdown", "log"} <= set(schema["properties"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    status, text, _ = baton("completion", shell)
    assert status == 0 and "serve" in text
    if shell == "bash":
        assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0


@pytest.mark.parametrize("words", [["serv"], ["serve"], ["serve", "--http-port", "x", "d"], ["serve", "--nothing"], []])
def test_wrong_words_are_a_usage_error(words):
    status, _, error = baton(*words)
    assert status == 2 and error


@pytest.mark.parametrize("words", [["sim", "run", "--duration", "-5s"], ["sim", "run", "--duration=-1ms"],
                                   ["sim", "run", "--duration", "1e300"],
                                   ["bench", "m", "--warmup", "-1s"], ["bench", "m", "--duration=-3s"]])
def test_a_time_is_not_negative(words):
    status, text, error = baton(*words)
    assert status == 2 and "time is from 0s" in error and not text, error


def test_the_exit_status_says_who_is_wrong(folder, tmp_path):
    assert baton("sim", "run", "--duration", "1s")[0] == 0
    assert baton("sim", "run", "--scenario", "nothing")[0] == 2
    assert baton("check", tmp_path / "nowhere")[0] == 1
    assert baton("check", folder)[0] == 1, "a model that would not load"
    assert baton("models", "--metrics-port", 1)[0] == 1
    assert baton("bench", "m", "--url", "127.0.0.1:1")[0] == 1
    assert baton("bench", "m", "--url", "nowhere")[0] == 2
    assert "Exit status" in baton("--help")[1]


def test_a_missing_provider_can_be_done_without(make_server, tmp_path):
    models.write(tmp_path / "r", "on_gpu", models.affine([-1, 4]),
                 "max_batch_size: 8\ninstance_group [ { kind: KIND_GPU } ]")
    (tmp_path / "baton.yaml").write_text("version: 1\nmissing_provider: cpu\n")
    running = make_server(tmp_path / "r", arguments=["-c", tmp_path / "baton.yaml"])
    assert running.infer("on_gpu", raw_http.infer_body([("X", "FP32", [1, 4], [1] * 4)])).status == 200
    assert "cannot use its CUDA provider, it runs without" in running.log()
