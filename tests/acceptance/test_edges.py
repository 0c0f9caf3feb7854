"""The edges: models without inputs, odd names, failed runs, clients that do not read, keys on every port."""

import json
import os
import resource
import socket

import grpc
import numpy
import pytest
import tritonclient.grpc
from onnx import helper
from tritonclient.grpc import service_pb2, service_pb2_grpc

from harness import clients, models, raw_http, server

KEYS = {"X-API-Key": "first-key"}


def no_input_model(numbers=(1, 2, 3)):
    node = helper.make_node("Constant", [], ["Y"], value=models.constant("c", numpy.float32(numbers)))
    return models.model([node], [], [models.value("Y", "FP32", [len(numbers)])])


def gather_model():
    nodes = [helper.make_node("Gather", ["table", "I"], ["Y"], name="look_up")]
    table = models.constant("table", numpy.arange(10, dtype=numpy.float32))
    return models.model(nodes, [models.value("I", "INT64", [-1])], [models.value("Y", "FP32", [-1])], [table])


@pytest.fixture(scope="module", name="folder")
def make_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("edges")
    models.write(folder, "nothing_in", no_input_model())
    models.write(folder, "much_out", no_input_model(range(100_000)))
    models.write(folder, "little_out", no_input_model(range(10)))
    models.write(folder, "gather", gather_model())
    models.write(folder, "identity_fp16", models.identity("FP16", [-1, -1]))
    models.write(folder, "identity_fp32", models.identity("FP32", [-1, -1]))
    return folder


@pytest.fixture(scope="module", name="served")
def serve(folder, tmp_path_factory):
    with server.Server(folder, folder=tmp_path_factory.mktemp("edges-server")) as running:
        yield running.wait_ready()


@pytest.mark.parametrize("flavour", clients.FLAVOURS)
def test_a_model_without_inputs_is_called(served, flavour):
    client = clients.Client(flavour, served.address(flavour.split("-")[0]))
    numpy.testing.assert_array_equal(client.infer("nothing_in", {}).arrays["Y"], numpy.float32([1, 2, 3]))
    client.close()


def test_a_model_with_inputs_still_wants_them(served):
    answer = served.infer("gather", {"inputs": []})
    assert answer.status == 400 and "I" in answer.json()["error"]


def test_the_log_tells_no_values_of_a_failed_run_and_the_client_is_told(served):
    before = len(served.log())
    for _ in range(40):
        answer = served.infer("gather", raw_http.infer_body([("I", "INT64", [1], [987654])]))
        assert answer.status == 500 and "987654" in answer.json()["error"]
        assert "onnxruntime" not in answer.json()["error"]
    lines = [line for line in served.log()[before:].splitlines() if "gather" in line]
    assert lines and 'Gather node "look_up"' in lines[0]
    assert "987654" not in served.log()
    ended = served.lines_of("gather")
    assert ended[-1]["end_reason"] == "engine_failed" and "987654" not in json.dumps(ended)
    assert len(lines) < 40, "a line for each failed run"


@pytest.mark.parametrize("datatype, number", [("FP16", 65520), ("FP16", -1e9), ("FP32", 1e39)])
def test_a_number_that_would_become_infinite_is_refused(served, datatype, number):
    answer = served.infer(f"identity_{datatype.lower()}", raw_http.infer_body([("IN", datatype, [1, 1], [number])]))
    assert answer.status == 400 and datatype in answer.json()["error"]


@pytest.mark.parametrize("data, status", [([[1, 2, 3]], 200), ([1, 2, 3], 200), ([[1, 2], [3]], 400),
                                          ([[1], [2], [3]], 400), ([[[1, 2, 3]]], 400), ([[1, 2], 3], 400)])
def test_nested_data_has_the_shape(served, data, status):
    body = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 3], "data": data}]}
    answer = served.infer("identity_fp32", body)
    assert answer.status == status, answer.body
    if status == 400:
        assert "IN" in answer.json()["error"]


def test_head_and_allow(served):
    with raw_http.Connection(served.ports["http"]) as connection:
        for path in ("/livez", "/readyz/", "/v2/health/live", "/v2/models/gather"):
            connection.send(f"HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            status, headers = connection.read_head()
            assert status == 200, path
    answer = served.request("/v2/models/gather/infer")
    assert answer.status == 405 and answer.headers["Allow"] == "POST"
    answer = served.request("/livez", method="POST", body=b"")
    assert answer.status == 405 and answer.headers["Allow"] == "GET, HEAD"


def test_a_name_that_is_not_utf8_fails_alone(make_server, folder, tmp_path):
    models.write(tmp_path / "odd", "fine", gather_model())
    os.makedirs(os.fsencode(tmp_path / "odd") + b"/b\xff\xfed/1")
    running = make_server(tmp_path / "odd", ready=False)
    running.wait_settled(["fine"])
    assert "b\\xff\\xfed failed" in running.log()
    assert running.infer("fine", raw_http.infer_body([("I", "INT64", [1], [3])])).status == 200
    assert running.metric("baton_model_ready", model="fine") == 1
    json.loads(running.get("/models", protocol="metrics").body)


@pytest.fixture(name="keyed")
def serve_with_keys(make_server, folder, tmp_path):
    (tmp_path / "keys").write_text("first-key team-a\n")
    (tmp_path / "baton.yaml").write_text(f"version: 1\napi_keys_file: '{tmp_path / 'keys'}'\n")
    return make_server(folder, arguments=["-c", tmp_path / "baton.yaml"])


def test_every_port_asks_for_the_key(keyed):
    for path in ("/livez", "/livez/", "/readyz/", "/v2/health/ready/"):
        assert keyed.get(path).status == 200, path
    assert keyed.get("/v2/models/gather", headers={"Authorization": "bearer first-key"}).status == 200
    assert keyed.get("/models", protocol="metrics").status == 401
    assert keyed.get("/models", protocol="metrics", headers=KEYS).status == 200
    assert keyed.get("/metrics", protocol="metrics").status == 200
    with raw_http.Connection(keyed.ports["http"]) as connection:
        connection.send(b"GET /v2/models/gather HTTP/1.1\r\nHost: a\r\nX-Api-Key: first-key\r\nX-Api-Key: x\r\n\r\n")
        assert connection.read_head()[0] == 400
    with grpc.insecure_channel(keyed.address("grpc")) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        assert stub.ServerReady(service_pb2.ServerReadyRequest(), timeout=10).ready
        for call in (lambda **more: stub.ServerMetadata(service_pb2.ServerMetadataRequest(), **more),
                     lambda **more: stub.ModelReady(service_pb2.ModelReadyRequest(name="gather"), **more)):
            with pytest.raises(grpc.RpcError) as error:
                call(timeout=10)
            assert error.value.code() == grpc.StatusCode.UNAUTHENTICATED
            call(timeout=10, metadata=[("x-api-key", "first-key")])


def binary_request(numbers):
    body = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, numbers],
                        "parameters": {"binary_data_size": 4 * numbers}}], "parameters": {"binary_data_output": True}}
    head = json.dumps(body).encode()
    return raw_http.post("/v2/models/identity_fp32/infer", head + bytes(4 * numbers),
                         [("Inference-Header-Content-Length", str(len(head)))])


def test_answers_that_nobody_reads_are_bounded(make_server, folder, tmp_path):
    (tmp_path / "baton.yaml").write_text("version: 1\nlimits: {answer_bytes: 40MiB, write_stall: 1s}\n")
    running = make_server(folder, arguments=["-c", tmp_path / "baton.yaml"])
    silent = []
    for _ in range(2):  # of 16 MiB each
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((raw_http.HOST, running.ports["http"]))
        client.sendall(binary_request(4 << 20))
        silent.append(client)
    server.wait_for(lambda: running.metric("baton_unwritten_answer_bytes") > 32 << 20, 10, "two answers that wait")
    with raw_http.Connection(running.ports["http"]) as reader:
        reader.send(binary_request(4 << 20))
        answer = reader.read()
        assert answer.status == 503 and answer.json()["reason"] == "overloaded"
        server.wait_for(lambda: running.metric("baton_listener_write_stalls_total") == 2, 20, "both cut off")
        assert running.metric("baton_unwritten_answer_bytes") == 0
        reader.send(binary_request(4 << 20))
        assert reader.read().status == 200
    for client in silent:
        client.close()


def test_grpc_serves_again_after_a_lack_of_descriptors(make_server, folder):
    running = make_server(folder)
    pid = running.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    limit = running.descriptors() + 10
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, before[1]))
    # gRPC's own connections leave a quarter of the descriptors to others: REST's take the rest.
    opened = [socket.create_connection((raw_http.HOST, running.ports["http"])) for _ in range(30)]
    server.wait_for(lambda: running.descriptors() == limit, 5, "no descriptor left")
    opened += [socket.create_connection((raw_http.HOST, running.ports["grpc"])) for _ in range(3)]
    for connection in opened:
        connection.close()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    client = tritonclient.grpc.InferenceServerClient(running.address("grpc"))
    assert client.is_server_live(client_timeout=20)
    client.close()


def test_grpc_connections_leave_descriptors_to_rest(make_server, folder):
    running = make_server(folder)
    pid = running.process.pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (200, hard))
    opened = [socket.create_connection((raw_http.HOST, running.ports["grpc"])) for _ in range(300)]
    refused = "baton_listener_connections_refused_total"
    server.wait_for(lambda: running.metric(refused, listener="grpc") > 100, 5, "refused connections")
    assert running.get("/livez", timeout_s=5).status == 200
    for connection in opened:
        connection.close()


@pytest.mark.parametrize("method", ["ServerLive", "ServerMetadata", "ModelMetadata", "ModelConfig", "ModelReady"])
def test_bytes_that_are_no_message_are_invalid_everywhere(served, method):
    with grpc.insecure_channel(served.address("grpc")) as channel:
        call = channel.unary_unary(f"/inference.GRPCInferenceService/{method}", request_serializer=lambda data: data,
                                   response_deserializer=lambda data: data)
        with pytest.raises(grpc.RpcError) as error:
            call(b"\x0a\x10abc", timeout=10)
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
