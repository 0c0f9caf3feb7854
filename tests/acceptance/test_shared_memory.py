"""System shared memory with tritonclient's own utilities: both ways, bad places, clients that pull it away."""

import contextlib
import json
import os
import threading
import uuid

import numpy
import pytest
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import InferenceServerException

from harness import clients, models, raw_http, server

LIMIT_MIB = 64


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    models.write_simple(folder)
    models.write(folder, "floats", models.identity("FP32", [-1, -1]))
    models.write(folder, "texts", models.identity("BYTES", [-1, -1]))
    settings = folder / "baton.yaml"
    settings.write_text(f"version: 1\nlimits: {{shared_memory: {LIMIT_MIB}MiB, body: 16MiB}}\n")
    with server.Server(folder, folder=tmp_path_factory.mktemp("shared-server"),
                       arguments=("--config", settings)) as running:
        yield running.wait_ready()


@pytest.fixture(params=clients.FLAVOURS)
def client(served, request):
    made = clients.Client(request.param, served.address(request.param.split("-")[0]))
    made.call("unregister_system_shared_memory")
    made.call("unregister_cuda_shared_memory")  # as Triton's examples begin
    yield made
    made.call("unregister_system_shared_memory")
    made.close()


@contextlib.contextmanager
def region(size):
    """An object of this process, by a key that nobody else has."""
    key = f"baton-test-{uuid.uuid4().hex}"
    handle = shm.create_shared_memory_region(key, key, size)
    try:
        yield key, handle
    finally:
        with contextlib.suppress(Exception):
            shm.destroy_shared_memory_region(handle)


def ask(client, model, inputs, outputs):
    """inputs: {name: (array's shape, datatype, region, bytes, offset) or array}; outputs the same, or None."""
    made = []
    for name, what in inputs.items():
        if isinstance(what, numpy.ndarray):
            made += client.inputs({name: what})
            continue
        shape, datatype, place, size, offset = what
        made.append(client.library.InferInput(name, shape, datatype))
        made[-1].set_shared_memory(place, size, offset)
    wanted = []
    for name, what in outputs.items():
        wanted.append(client.library.InferRequestedOutput(name))
        if what is not None:
            wanted[-1].set_shared_memory(*what)
    return client.call("infer", model, made, outputs=wanted)


def code(error):
    """HTTP's number of a refusal, over gRPC too."""
    numbers = {"INVALID_ARGUMENT": "400", "NOT_FOUND": "404", "UNIMPLEMENTED": "501", "UNAVAILABLE": "503",
               "RESOURCE_EXHAUSTED": "413"}
    status = str(error.value.status()).removeprefix("StatusCode.")
    return numbers.get(status, status)


def test_as_tritons_example_does(client):
    first, second = numpy.arange(16, dtype=numpy.int32), numpy.ones(16, numpy.int32)
    size = first.nbytes
    with region(2 * size) as (in_key, in_handle), region(2 * size) as (out_key, out_handle):
        shm.set_shared_memory_region(in_handle, [first, second])
        client.call("register_system_shared_memory", "input", in_key, 2 * size)
        client.call("register_system_shared_memory", "output", out_key, 2 * size)
        answer = ask(client, "simple", {"INPUT0": ([1, 16], "INT32", "input", size, 0),
                                        "INPUT1": ([1, 16], "INT32", "input", size, size)},
                     {"OUTPUT0": ("output", size), "OUTPUT1": ("output", size, size)})
        assert (shm.get_contents_as_numpy(out_handle, numpy.int32, [16]) == first + second).all()
        assert (shm.get_contents_as_numpy(out_handle, numpy.int32, [16], size) == first - second).all()
        found = answer.get_output("OUTPUT1")
        shape = found["shape"] if client.http else found.shape
        assert [int(number) for number in shape] == [1, 16]
        status = client.call("get_system_shared_memory_status")
        names = {item["name"] for item in status} if client.http else set(status["regions"])
        assert names == {"input", "output"}


def test_mixed_with_tensors_in_the_message(client):
    first, second = numpy.arange(16, dtype=numpy.int32).reshape(1, 16), numpy.full((1, 16), 7, numpy.int32)
    with region(1024) as (key, handle):
        shm.set_shared_memory_region(handle, [first], offset=100)
        client.call("register_system_shared_memory", "part", key, 500, offset=36)
        answer = ask(client, "simple", {"INPUT0": ([1, 16], "INT32", "part", 64, 64), "INPUT1": second},
                     {"OUTPUT0": ("part", 200, 300), "OUTPUT1": None})
        assert (answer.as_numpy("OUTPUT1") == first - second).all()
        assert (shm.get_contents_as_numpy(handle, numpy.int32, [1, 16], 336) == first + second).all()


def test_large_tensors_and_texts(client):
    values = numpy.arange(1_000_000, dtype=numpy.float32)
    with region(2 * values.nbytes) as (key, handle):
        shm.set_shared_memory_region(handle, [values])
        client.call("register_system_shared_memory", "large", key, 2 * values.nbytes)
        ask(client, "floats", {"IN": ([1, values.size], "FP32", "large", values.nbytes, 0)},
            {"OUT": ("large", values.nbytes, values.nbytes)})
        assert (shm.get_contents_as_numpy(handle, numpy.float32, [values.size], values.nbytes) == values).all()
    texts = numpy.array([b"a", "käse".encode(), b""], numpy.object_)
    packed = numpy.array([b"".join(len(text).to_bytes(4, "little") + text for text in texts)], numpy.object_)
    size = len(packed.item())
    with region(1024) as (key, handle):
        shm.set_shared_memory_region(handle, [packed])
        client.call("register_system_shared_memory", "texts", key, 1024)
        ask(client, "texts", {"IN": ([1, 3], "BYTES", "texts", size, 0)}, {"OUT": ("texts", 500, 512)})
        assert list(shm.get_contents_as_numpy(handle, numpy.object_, [3], 512)) == list(texts)


@pytest.mark.parametrize("change, words", [
    ({"size": 60}, "64"), ({"size": 68}, "64"), ({"offset": 100}, "128 bytes"), ({"size": 2**62, "offset": 2**62}, ""),
    ({"region": "other"}, "not registered"), ({"out_size": 63}, "shared_memory_byte_size"),
    ({"out_region": "gone"}, "not registered"), ({"out_offset": 2**62}, "128 bytes")])
def test_places_that_do_not_fit_are_invalid(client, change, words):  # server#3207, #8330, #6914
    what = {"region": "r", "size": 64, "offset": 0, "out_region": "r", "out_size": 64, "out_offset": 64} | change
    with region(128) as (key, _):
        client.call("register_system_shared_memory", "r", key, 128)
        with pytest.raises(InferenceServerException) as error:
            ask(client, "simple", {"INPUT0": ([1, 16], "INT32", what["region"], what["size"], what["offset"]),
                                   "INPUT1": numpy.ones((1, 16), numpy.int32)},
                {"OUTPUT0": (what["out_region"], what["out_size"], what["out_offset"])})
        assert code(error) in ("400", "413") and words in str(error.value)
        assert client.call("is_server_live")


def test_what_is_registered_badly(client):
    with region(128) as (key, _):
        client.call("register_system_shared_memory", "once", key, 128)
        for name, wrong_key, size, offset in (
                ("once", key, 128, 0), ("a", "not-there-" + key, 1, 0), ("a", "../" + key, 1, 0), ("a", "", 1, 0),
                ("a", key, 129, 0), ("a", key, 1, 2**62), ("a", key, 0, 0), ("a", key, 2**40, 0)):
            with pytest.raises(InferenceServerException) as error:
                client.call("register_system_shared_memory", name, wrong_key, size, offset=offset)
            assert code(error) in ("400", "503") and "/dev/shm" not in str(error.value)
    with pytest.raises(InferenceServerException) as error:
        client.call("get_system_shared_memory_status", "nothing")
    assert code(error) == "404"
    client.call("unregister_system_shared_memory", "nothing")


@pytest.mark.parametrize("pull", ["truncate", "unlink", "unregister"])
def test_a_region_that_is_pulled_away_is_an_error_and_the_server_lives(client, pull):
    with region(128) as (key, _):
        client.call("register_system_shared_memory", "r", key, 128)
        if pull == "truncate":
            os.truncate(f"/dev/shm/{key}", 16)
        elif pull == "unlink":
            os.unlink(f"/dev/shm/{key}")
        else:
            client.call("unregister_system_shared_memory", "r")
        for inputs, outputs in (({"INPUT0": ([1, 16], "INT32", "r", 64, 0)}, {"OUTPUT0": None}),
                                ({"INPUT0": numpy.ones((1, 16), numpy.int32)}, {"OUTPUT0": ("r", 64)})):
            inputs["INPUT1"] = numpy.ones((1, 16), numpy.int32)
            with pytest.raises(InferenceServerException) as error:
                ask(client, "simple", inputs, outputs)
            assert code(error) == "400"
        if pull != "unlink":
            assert os.stat(f"/dev/shm/{key}").st_size in (16, 128), "the object did not grow again"
        assert client.call("is_server_ready")


def test_unregistering_while_it_is_used(served):
    client = clients.Client("http", served.address("http"))
    stop = threading.Event()
    values = numpy.arange(400_000, dtype=numpy.float32)
    with region(2 * values.nbytes) as (key, handle):
        shm.set_shared_memory_region(handle, [values])

        def post(what, body=b""):
            answer = served.request(f"/v2/systemsharedmemory/region/busy/{what}", method="POST", body=body)
            assert answer.status == 200, answer.body

        def churn():
            while not stop.is_set():
                post("register", json.dumps({"key": key, "byte_size": 2 * values.nbytes}).encode())
                post("unregister")
        other = threading.Thread(target=churn)
        other.start()
        answered = 0
        try:
            for _ in range(100):
                with contextlib.suppress(InferenceServerException):
                    ask(client, "floats", {"IN": ([1, values.size], "FP32", "busy", values.nbytes, 0)},
                        {"OUT": ("busy", values.nbytes, values.nbytes)})
                    answered += 1
        finally:
            stop.set()
            other.join()
        assert answered > 0 and served.get("/v2/health/ready").status == 200
        client.close()
    names = [os.readlink(f"/proc/{served.process.pid}/fd/{number}")
             for number in os.listdir(f"/proc/{served.process.pid}/fd")]
    assert not [name for name in names if "baton-test" in name], "descriptors of regions are left"


@pytest.mark.parametrize("parameters", [
    {"shared_memory_region": "r"}, {"shared_memory_byte_size": 64}, {"shared_memory_region": 3},
    {"shared_memory_region": "", "shared_memory_byte_size": 64},
    {"shared_memory_region": "r", "shared_memory_byte_size": -1},
    {"shared_memory_region": "r", "shared_memory_byte_size": 64, "binary_data_size": 64}])
def test_parameters_that_say_no_place(served, parameters):
    inputs = [{"name": "INPUT0", "datatype": "INT32", "shape": [1, 16], "parameters": parameters},
              {"name": "INPUT1", "datatype": "INT32", "shape": [1, 16], "data": [1] * 16}]
    answer = served.infer("simple", {"inputs": inputs})
    assert answer.status == 400 and "INPUT0" in answer.json()["error"]
    body = json.loads(raw_http.infer_body([(name, "INT32", [1, 16], [1] * 16) for name in ("INPUT0", "INPUT1")]))
    body["outputs"] = [{"name": "OUTPUT0", "parameters": parameters | {"classification": 1}}]
    assert served.infer("simple", body).status == 400


def test_inputs_larger_than_the_body_limit_are_refused(served):
    with region(20 << 20) as (key, _):
        client = clients.Client("http", served.address("http"))
        client.call("register_system_shared_memory", "huge", key, 20 << 20)
        with pytest.raises(InferenceServerException) as error:
            ask(client, "floats", {"IN": ([1, 5 << 20], "FP32", "huge", 20 << 20, 0)}, {"OUT": None})
        assert error.value.status() == "413"
        client.call("unregister_system_shared_memory")
        client.close()


def test_it_is_off_unless_asked_for(make_server, tmp_path):
    models.write_simple(tmp_path / "repository")
    running = make_server(tmp_path / "repository")
    assert "system_shared_memory" not in running.get("/v2").json()["extensions"]
    assert running.get("/v2/systemsharedmemory/status").status == 501
    place = {"shared_memory_region": "r", "shared_memory_byte_size": 64}
    inputs = [{"name": name, "datatype": "INT32", "shape": [1, 16], "parameters": place}
              for name in ("INPUT0", "INPUT1")]
    answer = running.infer("simple", {"inputs": inputs})
    assert answer.status == 501 and "limits.shared_memory" in answer.json()["error"]


def test_it_is_named_where_it_is_on(served):
    assert "system_shared_memory" in served.get("/v2").json()["extensions"]
