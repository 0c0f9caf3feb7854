"""The metrics page and the access log: names, format, truth of the numbers, and never a payload."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from harness import models, raw_http, server

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECRET = "SECRETPAYLOAD"
NUMBER = 77123457

OWN = {"baton_requests_total": "counter", "baton_request_duration_seconds": "histogram",
       "baton_queue_duration_seconds": "histogram", "baton_compute_duration_seconds": "histogram",
       "baton_batch_size": "histogram"}
FOREIGN = {
    "nv_inference_request_success": "counter", "nv_inference_request_failure": "counter",
    "nv_inference_count": "counter", "nv_inference_exec_count": "counter",
    "nv_inference_pending_request_count": "gauge", "nv_inference_request_duration_us": "counter",
    "nv_inference_queue_duration_us": "counter", "nv_inference_compute_input_duration_us": "counter",
    "nv_inference_compute_infer_duration_us": "counter", "nv_inference_compute_output_duration_us": "counter",
    "inference_requests_in_flight": "gauge", "inference_queue_length": "gauge", "model_latency_ms": "histogram",
    "gpu_utilization": "gauge", "gpu_memory_used_bytes": "gauge"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("metrics")
    models.write_simple(folder)
    models.write_simple(folder, "quote_in_label")
    models.write(folder, "bytes", models.identity("BYTES", [-1]))
    models.write(folder, "ints", models.identity("INT32", [-1, -1]))
    with server.Server(folder, folder=tmp_path_factory.mktemp("metrics-server")) as running:
        yield running.wait_ready()


def promtool():
    found = shutil.which("promtool", path=f"{ROOT / '.cache/bin'}:{os.environ.get('PATH', '')}")
    if found is None:
        pytest.skip("promtool is not there; `tools/bootstrap test` fetches it")
    return found


def families(text):
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))


def only(text, wanted):
    """The page with the families alone whose names `wanted` accepts."""
    kept, keep = [], False
    for line in text.splitlines():
        if line.startswith("# HELP ") or line.startswith("# TYPE "):
            keep = wanted(line.split()[2])
        if keep:
            kept.append(line)
    return "\n".join(kept) + "\n"


def some_traffic(served):
    body = raw_http.infer_body([("IN", "INT32", [3, 1], [1, 2, 3])])
    for _ in range(4):
        assert served.infer("ints", body).status == 200
    assert served.infer("ints", b"{").status == 400
    assert served.infer("ints", raw_http.infer_body([("IN", "FP32", [1, 1], [1])])).status == 400


def test_promtool_accepts_our_own_families(served):
    some_traffic(served)
    text = only(served.metrics_text(), lambda name: name.startswith("baton_"))
    checked = subprocess.run([promtool(), "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert checked.returncode == 0 and not checked.stderr.strip(), checked.stderr + checked.stdout


def test_promtool_parses_the_whole_page(served):
    # The foreign names break promtool's rules for names (units, suffixes): remarks are allowed, errors are not.
    text = served.metrics_text()
    checked = subprocess.run([promtool(), "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert checked.returncode in (0, 3) and "error while linting" not in checked.stderr, checked.stderr
    for line in checked.stderr.splitlines():
        assert line.split()[0] in FOREIGN, line


OPEN_METRICS = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"


def open_metrics(served):
    answer = served.get("/metrics", protocol="metrics", headers={"Accept": OPEN_METRICS})
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    return answer.body.decode()


def test_promtool_reads_open_metrics(served, tmp_path):
    # Its reader of OpenMetrics is that of back-filling, which wants a time at each sample.
    some_traffic(served)
    text = open_metrics(served)
    timed = re.sub(r"(?m)^([^#].*)$", r"\1 1700000000.0", text)
    (tmp_path / "page").write_text(timed)
    checked = subprocess.run([promtool(), "tsdb", "create-blocks-from", "openmetrics", tmp_path / "page",
                              tmp_path / "blocks"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr + checked.stdout
    (tmp_path / "blocks" / "wal").mkdir()  # `dump` looks for one
    listed = subprocess.run([promtool(), "tsdb", "dump", tmp_path / "blocks"], capture_output=True, text=True,
                            check=True).stdout
    assert len(listed.splitlines()) == len(re.findall(r"(?m)^[^#]", text)) > 100


def test_open_metrics_has_the_same_series_as_the_text(served):
    some_traffic(served)
    plain, other = served.metrics_text(), open_metrics(served)
    assert other.endswith("\n# EOF\n") and "EOF" not in plain

    def series(text):
        return {(name, frozenset((key, float(word) if key == "le" else word) for key, word in labels.items()))
                for name, labels, _ in server.parse_metrics(text)}
    assert series(plain) == series(other)
    kinds = families(other)
    assert kinds["baton_requests"] == "counter" and "baton_requests_total" not in kinds
    assert kinds["nv_inference_count"] == "unknown" and kinds["baton_batch_size"] == "histogram"
    assert all(f"{name}_total" in families(plain) for name, kind in kinds.items() if kind == "counter")
    for bound in re.findall(r'le="([^"]+)"', other):
        assert bound == "+Inf" or "." in bound


@pytest.mark.parametrize("accept", ["", "*/*", "text/plain", "application/openmetrics-text;version=0.0.1",
                                    "text/plain, application/openmetrics-text;q=0.5"])
def test_text_is_the_format_where_nothing_else_is_preferred(served, accept):
    answer = served.get("/metrics", protocol="metrics", headers={"Accept": accept} if accept else {})
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert b"# EOF" not in answer.body


@pytest.mark.parametrize("name, kind", (OWN | FOREIGN).items())
def test_a_promised_family_is_there(served, name, kind):
    # server#7672, server#8561, server#3060: histograms without being asked for
    assert families(served.metrics_text()).get(name) == kind


def test_counters_tell_the_truth(served):
    names = ("nv_inference_request_success", "nv_inference_count", "nv_inference_request_failure",
             "baton_request_duration_seconds_count", "baton_compute_duration_seconds_count")
    before = [served.metric(name, model="ints") for name in names]
    refused = served.metric("baton_refused_total", end_reason="invalid")
    some_traffic(served)
    after = [served.metric(name, model="ints") for name in names]
    assert [new - old for new, old in zip(after, before)] == [4, 12, 1, 4, 4]
    assert served.metric("baton_refused_total", end_reason="invalid") - refused == 1


def test_histograms_are_cumulative_and_agree_with_their_counts(served):
    some_traffic(served)
    samples = server.parse_metrics(served.metrics_text())
    for family in (name for name, kind in (OWN | FOREIGN).items() if kind == "histogram"):
        series = {}
        for name, labels, number in samples:
            if name == family + "_bucket":
                key = tuple(sorted((key, text) for key, text in labels.items() if key != "le"))
                series.setdefault(key, []).append((float(labels["le"]), number))
        assert series, family
        for key, buckets in series.items():
            assert buckets == sorted(buckets) and buckets[-1][0] == float("inf")
            counts = [number for _, number in buckets]
            assert counts == sorted(counts)
            total = [number for name, labels, number in samples
                     if name == family + "_count" and tuple(sorted(labels.items())) == key]
            assert total == [counts[-1]], (family, key)


def test_gauges_come_back_to_zero_and_are_never_negative(served):
    # server#6494, server#6341
    some_traffic(served)
    for name in ("inference_requests_in_flight", "inference_queue_length", "baton_queued_requests",
                 "baton_running_requests", "nv_inference_pending_request_count"):
        values = [number for found, _, number in server.parse_metrics(served.metrics_text()) if found == name]
        assert values and set(values) == {0.0}, name


def test_no_series_is_written_twice(served):
    some_traffic(served)
    keys = [(name, tuple(sorted(labels.items()))) for name, labels, _ in server.parse_metrics(served.metrics_text())]
    assert len(keys) == len(set(keys))


def test_refused_and_failed_requests_are_failures_with_a_reason(served):
    # tensorrtllm_backend#582
    before = served.metric("nv_inference_request_failure", model="ints", reason="OTHER")
    served.infer("ints", raw_http.infer_body([("IN", "FP32", [1, 1], [1])]))
    assert served.metric("nv_inference_request_failure", model="ints", reason="OTHER") - before == 1


def test_unknown_models_make_no_series(served):
    # a client must not be able to grow the page
    some_traffic(served)
    before = len(served.metrics_text().splitlines())
    for index in range(200):
        assert served.infer(f"made-up-{index}", b"{}").status in (400, 404)
    assert len(served.metrics_text().splitlines()) <= before + 2
    assert "made-up" not in served.metrics_text()


# -- the access log


def line_of(served, client_id):
    def found():
        return [line for line in served.access_lines() if line.get("client_id") == client_id]
    return server.wait_for(found, 5, f"the line of {client_id}")[0]


def test_each_request_has_one_line_with_its_end_reason(served):
    good = raw_http.infer_body([("IN", "INT32", [2, 1], [1, 2])], id="good-1")
    wrong = raw_http.infer_body([("IN", "FP32", [2, 1], [1, 2])], id="wrong-1")
    served.infer("ints", good)
    served.infer("ints", wrong)
    line = line_of(served, "good-1")
    assert line["end_reason"] == "ok" and line["model"] == "ints" and line["version"] == 1 and line["items"] == 2
    assert line["protocol"] and line["total_us"] >= line["compute_us"] >= 0 and line["batch"] >= 2
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", line["ts"])
    assert line_of(served, "wrong-1")["end_reason"] == "invalid"
    assert len([line for line in served.access_lines() if line.get("client_id") == "good-1"]) == 1


def test_every_line_is_json_whatever_names_clients_send(served):
    body = raw_http.infer_body([("IN", "INT32", [1, 1], [1])], id='"\\\u0001\u2028käse')
    assert served.infer("ints", body).status == 200
    served.infer("a%22b%0ac", body)
    served.get("/v2/models/%22%0a", headers={"X-Request-Id": 'x"y'})
    assert line_of(served, '"\\\u0001\u2028käse')["end_reason"] == "ok"
    with open(served.access_file, encoding="utf-8") as lines:
        for line in lines:
            assert isinstance(json.loads(line), dict)


def test_a_trace_is_carried_into_the_log(served):
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    body = raw_http.infer_body([("IN", "INT32", [1, 1], [1])], id="traced")
    served.infer("ints", body, headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    assert line_of(served, "traced")["trace_id"] == trace


def test_neither_log_ever_holds_a_payload(served):
    bodies = [("bytes", raw_http.infer_body([("IN", "BYTES", [1], [SECRET])])),
              ("bytes", raw_http.infer_body([("IN", "BYTES", [2], [SECRET])])),
              ("bytes", raw_http.infer_body([("IN", "BYTES", [1], [SECRET])])[:-3]),
              ("bytes", b'{"inputs":[{"name":"IN","shape":[1],"datatype":"BYTES","data":' + SECRET.encode() + b"}]}"),
              ("ints", raw_http.infer_body([("IN", "INT32", [1, 1], [NUMBER])])),
              ("ints", raw_http.infer_body([("IN", "INT32", [1, 2], [NUMBER])])),
              ("ints", raw_http.infer_body([("IN", "INT32", [1, 1], [NUMBER * 1000])])),
              ("ints", raw_http.infer_body([("IN", "BYTES", [1, 1], [SECRET])]))]
    statuses = [served.infer(model, body).status for model, body in bodies]
    assert statuses == [200, 400, 400, 400, 200, 400, 400, 400]
    last = raw_http.infer_body([("IN", "INT32", [1, 1], [1])], id="after-the-secrets")
    served.infer("ints", last)
    line_of(served, "after-the-secrets")
    for text in (served.access_file.read_text(), served.log(), served.metrics_text()):
        assert SECRET not in text and str(NUMBER) not in text


def cpu_ns(served, thread):
    """Nanoseconds of CPU that the server's threads of that name have had."""
    spent = 0
    for task in pathlib.Path(f"/proc/{served.process.pid}/task").iterdir():
        if (task / "comm").read_text().strip() == thread:
            spent += int((task / "schedstat").read_text().split()[0])
    return spent


def test_a_scrape_runs_on_no_worker(served):
    served.metrics_text()
    before = {name: cpu_ns(served, name) for name in ("baton-w0", "baton-metrics")}
    for _ in range(50):
        served.metrics_text()
    spent = {name: cpu_ns(served, name) - before[name] for name in before}
    assert spent["baton-metrics"] > 50 * 1000, "each scrape takes some microseconds"
    assert spent["baton-w0"] < spent["baton-metrics"] / 5, spent


def test_connections_and_what_the_codec_refuses_are_counted(served):
    before = {name: served.metric(f"baton_listener_{name}", listener="http")
              for name in ("connections_accepted_total", "bad_requests_total", "connections_refused_total")}
    with raw_http.Connection(served.ports["http"]) as held:
        held.ask(raw_http.get("/livez"))
        assert served.metric("baton_listener_connections", listener="http") >= 1
        with raw_http.Connection(served.ports["http"]) as wrong:
            assert wrong.ask(b"GET / HTTP/3.0\r\nHost: a\r\n\r\n").status == 505
    assert served.metric("baton_listener_connections_accepted_total", listener="http") \
        == before["connections_accepted_total"] + 2
    assert served.metric("baton_listener_bad_requests_total", listener="http") == before["bad_requests_total"] + 1
    assert served.metric("baton_listener_connections_refused_total", listener="http") \
        == before["connections_refused_total"]
    assert served.metric("baton_listener_connections", listener="metrics") >= 1
    assert served.metric("baton_log_lines_dropped_total", log="access") == 0
