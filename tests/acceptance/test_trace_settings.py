"""The trace extension by tritonclient: which requests are traced, and a file that trace summaries read."""

import json
import subprocess

import numpy
import pytest
from tritonclient.utils import InferenceServerException

from harness import clients, models, raw_http, server

STAGES = ["REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END",
          "REQUEST_END"]
PAIR = raw_http.infer_body([("INPUT0", "INT32", [1, 16], [0] * 16), ("INPUT1", "INT32", [1, 16], [1] * 16)])
CLEAR = {"trace_level": None, "trace_rate": None, "trace_count": None}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trace")
    models.write_simple(folder)
    models.write(folder, "floats", models.identity("FP32", [-1, -1]))
    file = tmp_path_factory.mktemp("traces") / "traces.json"
    settings = folder / "baton.yaml"
    settings.write_text(f"version: 1\ntrace: {{file: {file}}}\n")
    with server.Server(folder, folder=tmp_path_factory.mktemp("trace-server"),
                       arguments=("--config", settings)) as running:
        running.trace_file = file
        yield running.wait_ready()


@pytest.fixture(params=clients.FLAVOURS)
def client(served, request):
    made = clients.Client(request.param, served.address(request.param.split("-")[0]))
    yield made
    made.call("update_trace_settings", settings=CLEAR | {"log_frequency": None})
    for model in ("simple", "floats"):
        made.call("update_trace_settings", model_name=model, settings=CLEAR)
    made.close()


def plain(client, found):
    if client.http:
        return found
    found = found["settings"] if isinstance(found, dict) else {
        name: {"value": list(value.value)} for name, value in found.settings.items()}
    return {name: value["value"] if name == "trace_level" else value["value"][0] for name, value in found.items()}


def get(client, model=None):
    return plain(client, client.call("get_trace_settings", model_name=model))


def update(client, settings, model=None):
    return plain(client, client.call("update_trace_settings", model_name=model, settings=settings))


def traces(served):
    text = served.trace_file.read_text()
    return json.loads(text) if text else []


def infer(client, request_id, count=1):
    numbers = numpy.zeros((1, 16), numpy.int32)
    for _ in range(count):
        client.infer("simple", {"INPUT0": numbers, "INPUT1": numbers}, request_id=request_id)


def wait_for_traces(served, request_id, count):
    def found():
        named = [trace for trace in traces(served) if trace.get("request_id") == request_id]
        return named if len(named) >= count else None
    return server.wait_for(found, 5, f"{count} traces of {request_id}")


def test_settings_are_read_changed_and_cleared(served, client):
    defaults = {"trace_file": str(served.trace_file), "trace_level": ["OFF"], "trace_rate": "1000",
                "trace_count": "-1", "log_frequency": "0"}
    assert get(client) == defaults == get(client, "simple")
    assert "trace" in client.call("get_server_metadata")["extensions"]
    changed = defaults | {"trace_level": ["TIMESTAMPS"], "trace_rate": "5"}
    assert update(client, {"trace_level": ["TIMESTAMPS"], "trace_rate": "5"}) == changed
    assert get(client, "simple") == changed, "a model has the server's settings"
    assert update(client, {"trace_rate": "2", "trace_count": "9"}, "simple") == changed | {
        "trace_rate": "2", "trace_count": "9"}
    assert get(client) == get(client, "floats") == changed
    assert update(client, {"trace_rate": None}, "simple")["trace_rate"] == "5"
    assert update(client, {"trace_level": None, "trace_rate": None}) == defaults


@pytest.mark.parametrize("wrong, status, model", [
    ({"trace_file": "/tmp/other"}, "501", None), ({"trace_level": ["TENSORS"]}, "501", None),
    ({"trace_rate": "0"}, "400", None), ({"trace_rate": "often"}, "400", None), ({"trace_nothing": "1"}, "400", None),
    ({"trace_level": ["OFF", "TIMESTAMPS"]}, "400", "simple"), ({"log_frequency": "5"}, "501", "simple"),
    ({"trace_rate": "1"}, "404", "unknown")])
def test_what_cannot_be_set_is_told_and_changes_nothing(client, wrong, status, model):
    grpc = {"400": "INVALID_ARGUMENT", "501": "UNIMPLEMENTED", "404": "NOT_FOUND"}
    before = get(client)
    with pytest.raises(InferenceServerException) as error:
        update(client, {"trace_count": "7"} | wrong, model)
    assert error.value.status() == (status if client.http else "StatusCode." + grpc[status])
    assert get(client) == before and get(client, "simple") == before


def test_every_second_request_is_traced(served, client):
    name = "second-" + client.flavour
    update(client, {"trace_level": ["TIMESTAMPS"], "trace_rate": "2"}, "simple")
    infer(client, name, 10)
    found = wait_for_traces(served, name, 5)
    assert len(found) == 5
    for trace in found:
        assert trace["model_name"] == "simple" and trace["model_version"] == 1 and isinstance(trace["id"], int)
        names = [stamp["name"] for stamp in trace["timestamps"]]
        assert names == ["HTTP_RECV_START" if client.http else "GRPC_WAITREAD_START"] + STAGES
        times = [stamp["ns"] for stamp in trace["timestamps"]]
        assert times == sorted(times) and times[-1] - times[0] < 10e9
    assert len({trace["id"] for trace in found}) == 5


def test_a_count_ends_and_off_traces_nothing(served, client):
    name = "count-" + client.flavour
    update(client, {"trace_level": ["TIMESTAMPS"], "trace_rate": "1", "trace_count": "3"})
    infer(client, name, 6)
    assert len(wait_for_traces(served, name, 3)) == 3
    assert get(client)["trace_count"] == "0"
    update(client, {"trace_level": ["OFF"], "trace_count": "-1"})
    infer(client, name + "-off", 3)
    update(client, {"trace_level": ["TIMESTAMPS"]})
    infer(client, name + "-on")
    wait_for_traces(served, name + "-on", 1)
    assert not [trace for trace in traces(served) if trace.get("request_id") == name + "-off"]


def test_a_frequency_fills_files_of_their_own(served):
    def post(body):
        assert served.request("/v2/trace/setting", method="POST", body=json.dumps(body).encode()).status == 200
    post({"trace_level": ["TIMESTAMPS"], "trace_rate": "1", "log_frequency": "2"})
    for _ in range(5):
        assert served.infer("simple", PAIR).status == 200

    def full():
        files = sorted(served.trace_file.parent.glob("traces.json.*"))
        return files if len(files) == 3 else None
    files = server.wait_for(full, 5, "three files")
    post({"trace_level": None, "trace_rate": None, "log_frequency": None})
    assert [len(json.loads(file.read_text())) for file in files[:2]] == [2, 2]


def test_a_refused_request_ends_without_a_run(served):
    body = json.dumps({"trace_level": ["TIMESTAMPS"], "trace_rate": "1"}).encode()
    assert served.request("/v2/models/simple/trace/setting", method="POST", body=body).status == 200
    wrong = raw_http.infer_body([("INPUT0", "INT32", [1, 16], [0] * 16)])
    answer = served.request("/v2/models/simple/infer", method="POST", body=wrong, headers={"x-request-id": "wrong"})
    assert answer.status == 400
    trace, = wait_for_traces(served, "wrong", 1)
    assert trace["end_reason"] == "invalid"
    assert [stamp["name"] for stamp in trace["timestamps"]] == ["HTTP_RECV_START", "REQUEST_START", "REQUEST_END"]
    clear = json.dumps(CLEAR).encode()
    assert served.request("/v2/models/simple/trace/setting", method="POST", body=clear).status == 200


def test_without_a_file_it_is_not_offered(general):
    assert "trace" not in general.get("/v2").json()["extensions"]
    answer = general.get("/v2/trace/setting")
    assert answer.status == 501 and "trace.file" in answer.json()["error"]
    client = clients.Client("grpc", general.address("grpc"))
    with pytest.raises(InferenceServerException, match="trace.file"):
        client.call("get_trace_settings")
    client.close()


def test_a_file_that_holds_something_else_ends_the_start(tmp_path):
    models.write_simple(tmp_path / "repository")
    notes = tmp_path / "notes.txt"
    notes.write_text("keep me")
    settings = tmp_path / "baton.yaml"
    settings.write_text(f"version: 1\nlisten: {{http: 0, grpc: 0, metrics: 0}}\ntrace: {{file: {notes}}}\n")
    ended = subprocess.run([server.binary(), "serve", tmp_path / "repository", "--config", settings],
                           capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode != 0 and "trace.file" in ended.stderr and "something else" in ended.stderr
    assert notes.read_text() == "keep me"
