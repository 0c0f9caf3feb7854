"""Sequences: controls, state on the server, order, limits and ends, with tritonclient's four flavours."""

import asyncio
import contextlib
import queue
import threading
import time

import numpy
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
from onnx import helper
from tritonclient.utils import InferenceServerException

import conftest
from harness import clients, models, reference, repository, server
from harness.sequences import CONTROLS, STATE, config, tracker


def slow_sum():
    """Y = NEXT = X + SUM, after as many rounds as ROUNDS says; without a batch."""
    made = models.spin(dims=(1, 1))
    graph = made.graph
    for node in graph.node:
        if list(node.output) == ["Y"]:
            node.output[0] = "spun"
    graph.node.extend([helper.make_node("Add", ["spun", "SUM"], ["NEXT"]),
                       helper.make_node("Identity", ["NEXT"], ["Y"])])
    graph.input.append(models.value("SUM", "FP32", [1, 1]))
    graph.output.append(models.value("NEXT", "FP32", [1, 1]))
    return made


SLOW_STATE = 'state [ { input_name: "SUM" output_name: "NEXT" data_type: TYPE_FP32 dims: [ 1, 1 ] } ]'


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sequences")
    models.write(folder, "direct", tracker(), config())
    models.write(folder, "oldest", tracker(), config("oldest { max_candidate_sequences: 64 }"))
    models.write(folder, "text", tracker("BYTES"), config(controls=CONTROLS.replace("TYPE_UINT64", "TYPE_STRING")))
    models.write(folder, "small", tracker("INT32"), config(controls=CONTROLS.replace("TYPE_UINT64", "TYPE_INT32")))
    models.write(folder, "brief", tracker(), config(idle_s=0.3))
    models.write(folder, "one", tracker(), config("oldest { max_candidate_sequences: 1 }"))
    models.write(folder, "one_brief", tracker(), config("oldest { max_candidate_sequences: 1 }", idle_s=0.3))
    models.write(folder, "shown", tracker(), config(
        extra="".join(models.tensor_text("output", name, "INT32", [1]) for name in ("NEXT", "OUTPUT"))))
    models.write(folder, "first", tracker(), config(state=STATE.replace(
        "} ]", 'initial_state [ { data_type: TYPE_INT32 dims: [ 1 ] data_file: "hundred" name: "a" } ] } ]')))
    (folder / "first" / "initial_state").mkdir()
    (folder / "first" / "initial_state" / "hundred").write_bytes(numpy.int32(100).tobytes())
    models.write(folder, "slow", slow_sum(), config(batch=0, controls="", state=SLOW_STATE))
    models.write_simple(folder)
    with server.Server(folder, folder=tmp_path_factory.mktemp("sequences-server")) as running:
        yield running.wait_ready()


@pytest.fixture(params=[*clients.FLAVOURS, "http-json"])
def client(served, request):
    flavour = request.param.removesuffix("-json")
    made = conftest.connect(served, flavour, request.param.endswith("-json"))
    yield made
    made.close()


NUMBERS = iter(range(1, 1 << 30))


@pytest.fixture
def number():
    """A correlation id that no other test uses."""
    return next(NUMBERS)


def step(client, model, value, sequence, *, start=False, end=False, **more):
    array = numpy.array([[value]], numpy.int32)
    return client.infer(model, {"INPUT": array}, sequence_id=sequence, sequence_start=start, sequence_end=end,
                        **more).arrays


def total(*arguments, **more):
    return int(step(*arguments, **more)["OUTPUT"][0, 0])


def refused(*arguments, **more):
    with pytest.raises(InferenceServerException) as caught:
        step(*arguments, **more)
    return str(caught.value)


def post(running, model, value, sequence, start=False, end=False, timeout_us=None, timeout_s=30):
    parameters = {"sequence_id": sequence, "sequence_start": start, "sequence_end": end}
    if timeout_us:
        parameters["timeout"] = timeout_us
    body = {"inputs": [{"name": "INPUT", "datatype": "INT32", "shape": [1, 1], "data": [value]}],
            "parameters": parameters}
    return running.infer(model, body, timeout_s=timeout_s)


def value_of(answer):
    assert answer.status == 200, answer.body
    return next(output["data"][0] for output in answer.json()["outputs"] if output["name"] == "OUTPUT")


# -- what a model sees


@pytest.mark.parametrize("model", ["direct", "oldest"])
def test_state_goes_from_step_to_step(client, model, number):
    assert total(client, model, 5, number, start=True) == 5
    assert total(client, model, 7, number) == 12
    assert total(client, model, 1, number, end=True) == 13
    assert "sequence_start" in refused(client, model, 1, number)
    assert total(client, model, 2, number, start=True, end=True) == 2


def test_a_model_is_told_where_in_its_sequence_it_is(client, number):
    first = step(client, "direct", 1, number, start=True)
    middle = step(client, "direct", 1, number)
    last = step(client, "direct", 1, number, end=True)
    assert [made["FLAGS"][0].tolist() for made in (first, middle, last)] == [[1, 0, 1], [0, 0, 1], [0, 1, 1]]
    assert [int(made["ID"][0, 0]) for made in (first, middle, last)] == [number] * 3


def test_ids_may_be_texts(client, number):
    name = f"séquence-{number}"
    assert total(client, "text", 5, name, start=True) == 5
    made = step(client, "text", 6, name, end=True)
    assert made["OUTPUT"][0, 0] == 11 and made["ID"][0, 0] == name.encode()
    # A number where the model takes a text is that text.
    assert step(client, "text", 6, number, start=True, end=True)["ID"][0, 0] == str(number).encode()


def test_sequences_stand_apart(client, number):
    others = [next(NUMBERS) for _ in range(4)]
    for index, other in enumerate([number, *others]):
        assert total(client, "oldest", index, other, start=True) == index
    for index, other in enumerate([number, *others]):
        assert total(client, "oldest", 10, other) == index + 10
    for index, other in enumerate([number, *others]):
        assert total(client, "oldest", 10, other, end=True) == index + 20


def test_a_beginning_while_it_is_live_begins_anew(client, number):
    assert total(client, "direct", 5, number, start=True) == 5
    assert total(client, "direct", 5, number) == 10
    assert total(client, "direct", 3, number, start=True) == 3
    assert total(client, "direct", 4, number, end=True) == 7


def test_states_are_shown_where_they_are_outputs(client, number):
    assert set(step(client, "direct", 4, number, start=True, end=True)) == {"OUTPUT", "FLAGS", "ID"}
    made = step(client, "shown", 4, number, start=True, end=True)
    assert set(made) == {"OUTPUT", "NEXT"} and made["NEXT"][0, 0] == 4
    only = step(client, "shown", 4, number, start=True, end=True, outputs=["OUTPUT"])
    assert set(only) == {"OUTPUT"}


def test_a_first_state_comes_from_a_file(client, number):
    assert total(client, "first", 1, number, start=True) == 101
    assert total(client, "first", 1, number, start=True, end=True) == 101


# -- what is refused


def test_wrong_steps_are_the_clients_mistakes(client, number):
    assert "has not begun" in refused(client, "direct", 1, number)
    assert "sequence_id" in refused(client, "direct", 1, 0)
    assert "keeps no sequences" in str(pytest.raises(
        InferenceServerException, client.infer, "simple",
        {name: numpy.zeros((1, 16), numpy.int32) for name in ("INPUT0", "INPUT1")},
        sequence_id=number, sequence_start=True).value)
    assert "does not fit" in refused(client, "small", 1, "text", start=True)
    assert "does not fit" in refused(client, "small", 1, 1 << 31, start=True)
    assert "128 bytes" in refused(client, "text", 1, "x" * 129, start=True)
    with pytest.raises(InferenceServerException, match="batch size"):
        client.infer("direct", {"INPUT": numpy.zeros((2, 1), numpy.int32)}, sequence_id=number, sequence_start=True)
    with pytest.raises(InferenceServerException, match="SUM"):  # the server's own
        client.infer("direct", {"INPUT": numpy.zeros((1, 1), numpy.int32), "SUM": numpy.zeros((1, 1), numpy.int32)},
                     sequence_id=number, sequence_start=True)


@pytest.mark.parametrize("parameters", [
    {"sequence_id": -1}, {"sequence_id": 1.5}, {"sequence_id": True}, {"sequence_id": None}, {"sequence_id": [1]},
    {"sequence_id": 1 << 64}, {"sequence_id": 1, "sequence_start": 1}, {"sequence_id": 1, "sequence_end": "true"},
    {"sequence_start": True}, {"sequence_id": "", "sequence_start": True}])
def test_parameters_of_the_wrong_type_are_refused(served, parameters):
    body = {"inputs": [{"name": "INPUT", "datatype": "INT32", "shape": [1, 1], "data": [1]}], "parameters": parameters}
    answer = served.infer("direct", body)
    assert answer.status == 400 and "sequence_" in answer.json()["error"], answer.body


def test_the_configuration_is_told(served):
    told = served.get("/v2/models/direct/config").json()["sequence_batching"]
    assert told["max_sequence_idle_microseconds"] == 60_000_000 and "direct" in told
    assert [control["name"] for control in told["control_input"]] == ["START", "END", "READY", "CORRID"]
    assert told["state"][0]["output_name"] == "NEXT"
    assert served.get("/v2/models/oldest/config").json()["sequence_batching"]["oldest"] == {
        "max_candidate_sequences": 64, "preferred_batch_size": [], "max_queue_delay_microseconds": 0,
        "preserve_ordering": False}
    metadata = served.get("/v2/models/direct").json()
    assert [tensor["name"] for tensor in metadata["inputs"]] == ["INPUT"]
    assert [tensor["name"] for tensor in metadata["outputs"]] == ["OUTPUT", "FLAGS", "ID"]
    assert {"sequence", "sequence(string_id)"} <= set(served.get("/v2").json()["extensions"])
    with tritonclient.grpc.InferenceServerClient(served.address("grpc")) as raw:
        over = raw.get_model_config("oldest", as_json=True)["config"]["sequence_batching"]
        assert over["oldest"]["max_candidate_sequences"] == 64 and len(over["control_input"]) == 4


WRONG = {  # what the failure names
    "no_input": (config(state=STATE.replace("SUM", "OTHER")), "OTHER"),
    "no_output": (config(state=STATE.replace("NEXT", "OTHER")), "OTHER"),
    "state_type": (config(state=STATE.replace("INT32", "FP32")), "SUM"),
    "state_dims": (config(state=STATE.replace("dims: [ 1 ]", "dims: [ 2 ]")), "SUM"),
    "state_nameless": (config(state="state [ { data_type: TYPE_INT32 dims: [ 1 ] } ]"), "input_name"),
    "twice": (config(state=STATE + "\n" + STATE), "twice"),
    "control_type": (config(controls=CONTROLS.replace("int32_false_true", "fp32_false_true")), "START"),
    "control_values": (config(controls=CONTROLS.replace("[ 0, 1 ] } ] },\n                  { name: \"END\"",
                                                        "[ 0 ] } ] },\n                  { name: \"END\"")),
                       "two values"),
    "control_input": (config(controls=CONTROLS.replace('"START"', '"OTHER"')), "OTHER"),
    "corrid": (config(controls=CONTROLS.replace("TYPE_UINT64", "TYPE_FP32")), "CORRID"),
    "candidates": (config("oldest { }"), "max_candidate_sequences"),
    "file": (config(state=STATE.replace("} ]", "initial_state [ { data_type: TYPE_INT32 dims: [ 1 ] data_file: "
                                               "\"nothing\" name: \"a\" } ] } ]")), "nothing"),
    "escapes": (config(state=STATE.replace("} ]", "initial_state [ { data_type: TYPE_INT32 dims: [ 1 ] data_file: "
                                                  "\"../../../etc/passwd\" name: \"a\" } ] } ]")), "passwd"),
    "length": (config(state=STATE.replace("} ]", "initial_state [ { data_type: TYPE_INT32 dims: [ 1 ] data_file: "
                                                 "\"hundred\" name: \"a\" } ] } ]")), "bytes"),
    "client_sends": (config(extra=models.tensor_text("input", "SUM", "INT32", [1])), "SUM"),
    "growable": (config(state=STATE.replace("} ]", "use_growable_memory: true } ]")), "use_growable_memory"),
}


def test_wrong_configurations_fail_by_name(tmp_path, make_server):
    folder = tmp_path / "models"
    for name, (text, _) in WRONG.items():
        models.write(folder, name, tracker(), text)
    (folder / "length" / "initial_state").mkdir()
    (folder / "length" / "initial_state" / "hundred").write_bytes(b"12345")
    states = make_server(folder, ready=False).wait_settled(WRONG, 60)
    for name, (_, named) in WRONG.items():
        assert states[name] is not None and named in states[name], (name, states[name])


# -- order, sharing, waiting


def test_steps_of_one_sequence_run_in_their_order(served, number):
    answers = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(served.address("grpc")) as raw:
        raw.start_stream(lambda result, error: answers.put((result, error)))
        for index in range(200):
            tensor = tritonclient.grpc.InferInput("INPUT", [1, 1], "INT32")
            tensor.set_data_from_numpy(numpy.array([[index]], numpy.int32))
            raw.async_stream_infer("direct", [tensor], sequence_id=number, sequence_start=index == 0,
                                   sequence_end=index == 199)
        for index in range(200):
            result, error = answers.get(timeout=20)
            assert error is None, error
            assert result.as_numpy("OUTPUT")[0, 0] == index * (index + 1) // 2
        raw.stop_stream()


@pytest.mark.parametrize("model", ["direct", "oldest"])
def test_many_sequences_at_once_each_have_their_own_state(served, model):
    live = 8  # of `direct`: one instance, eight rows
    before = served.metric("nv_inference_exec_count", model=model)

    async def sequence(raw, first):
        number = next(NUMBERS)
        sums = []
        for index in range(25):
            tensor = tritonclient.grpc.InferInput("INPUT", [1, 1], "INT32")
            tensor.set_data_from_numpy(numpy.array([[first]], numpy.int32))
            answer = await raw.infer(model, [tensor], sequence_id=number, sequence_start=index == 0,
                                     sequence_end=index == 24)
            sums.append(int(answer.as_numpy("OUTPUT")[0, 0]))
        assert sums == [first * (index + 1) for index in range(25)]

    async def together():
        async with tritonclient.grpc.aio.InferenceServerClient(served.address("grpc")) as raw:
            await asyncio.gather(*(sequence(raw, first) for first in range(3 * live)))
    asyncio.run(together())
    assert served.metric("nv_inference_exec_count", model=model) - before <= 3 * live * 25
    assert served.metric("baton_sequences_live", model=model) <= 64


def spend(running, sequence, seconds, start=False, end=False, value=1.0, **more):
    rounds = int(models.rounds_a_second(8) * seconds)
    body = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 1], "data": [value]},
                       {"name": "ROUNDS", "datatype": "INT64", "shape": [1, 1], "data": [rounds]}],
            "parameters": {"sequence_id": sequence, "sequence_start": start, "sequence_end": end, **more}}
    return running.infer("slow", body)


class Later(threading.Thread):
    """A call on a thread of its own."""

    def __init__(self, call, *arguments, **more):
        super().__init__(daemon=True)
        self.made = lambda: call(*arguments, **more)
        self.answer = None
        self.start()

    def run(self):
        self.answer = self.made()

    def get(self, timeout_s=30):
        self.join(timeout_s)
        assert not self.is_alive(), "no answer"
        return self.answer


def test_a_beginning_waits_for_a_place_and_its_deadline_holds(served):
    # server#5467 (report 40): a queue policy for sequences; what waits is refused on time
    first, second, third = (next(NUMBERS) for _ in range(3))
    assert value_of(post(served, "one", 1, first, start=True)) == 1
    waiting = Later(post, served, "one", 5, second, start=True)
    server.wait_for(lambda: served.metric("baton_queued_requests", model="one") == 1, 5, "a waiting beginning")
    began = time.monotonic()
    late = post(served, "one", 5, third, start=True, timeout_us=200_000)
    assert late.status == 503 and 0.15 < time.monotonic() - began < 2, late.body
    assert post(served, "one", 5, third).status == 400  # it never began
    assert waiting.is_alive()
    assert value_of(post(served, "one", 1, first, end=True)) == 2
    assert value_of(waiting.get()) == 5
    assert value_of(post(served, "one", 1, second, end=True)) == 6


def test_a_client_that_leaves_while_it_waits_leaves_nothing(served):
    first, second = next(NUMBERS), next(NUMBERS)
    assert value_of(post(served, "one", 1, first, start=True)) == 1

    async def leave():
        async with tritonclient.grpc.aio.InferenceServerClient(served.address("grpc")) as raw:
            tensor = tritonclient.grpc.InferInput("INPUT", [1, 1], "INT32")
            tensor.set_data_from_numpy(numpy.array([[1]], numpy.int32))
            call = asyncio.ensure_future(raw.infer("one", [tensor], sequence_id=second, sequence_start=True))
            await asyncio.to_thread(server.wait_for,
                                    lambda: served.metric("baton_queued_requests", model="one") == 1, 5, "it waits")
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await call
    asyncio.run(leave())
    server.wait_for(lambda: served.metric("baton_queued_requests", model="one") == 0, 5, "it to leave")
    assert value_of(post(served, "one", 1, first, end=True)) == 2
    server.wait_for(lambda: served.metric("baton_sequences_live", model="one") == 0, 5, "no live sequence")


def test_an_idle_sequence_ends_and_its_next_step_says_so(client, served, number):
    # server#4628, #3492, #5743 (report 41)
    ended = served.metric("baton_sequences_idle_ended_total", model="brief")
    assert total(client, "brief", 5, number, start=True) == 5
    assert served.metric("baton_sequence_state_bytes", model="brief") >= 4
    server.wait_for(lambda: served.metric("baton_sequences_idle_ended_total", model="brief") > ended, 5, "an idle end")
    assert "300000 us" in refused(client, "brief", 1, number)
    assert served.metric("baton_sequence_state_bytes", model="brief") == 0
    assert total(client, "brief", 2, number, start=True, end=True) == 2


def test_an_idle_sequence_gives_its_place_to_one_that_waits(served):
    first, second = next(NUMBERS), next(NUMBERS)
    assert value_of(post(served, "one_brief", 1, first, start=True)) == 1
    assert value_of(post(served, "one_brief", 7, second, start=True, end=True)) == 7
    assert "300000 us" in post(served, "one_brief", 1, first).json()["error"]


# -- steps that fail


def test_a_failed_step_leaves_the_sequence_where_it_was(client, number):
    assert total(client, "direct", 5, number, start=True) == 5
    assert "failed" in refused(client, "direct", 1000, number)
    assert total(client, "direct", 6, number) == 11
    assert "failed" in refused(client, "direct", 1000, number, end=True)
    assert total(client, "direct", 1, number, end=True) == 12
    assert "failed" in refused(client, "direct", 1000, number, start=True)
    assert "has not begun" in refused(client, "direct", 1, number)  # a failed beginning begins nothing


def test_steps_behind_a_failed_one_are_lost(served, number):
    answers = queue.Queue()
    lost = served.metric("baton_sequence_steps_lost_total", model="direct")
    with tritonclient.grpc.InferenceServerClient(served.address("grpc")) as raw:
        raw.start_stream(lambda result, error: answers.put((result, error)))
        values = [1, 1000, 2, 3, 4]
        for index, given in enumerate(values):
            tensor = tritonclient.grpc.InferInput("INPUT", [1, 1], "INT32")
            tensor.set_data_from_numpy(numpy.array([[given]], numpy.int32))
            raw.async_stream_infer("direct", [tensor], sequence_id=number, sequence_start=index == 0)
        outcomes = [answers.get(timeout=20) for _ in values]
        raw.stop_stream()
    assert outcomes[0][1] is None and outcomes[1][1] is not None
    # Those that came before the failure was known are lost; one that came after it goes on from before.
    behind = [error for _, error in outcomes[2:]]
    assert sum(error is not None and "earlier request" in str(error) for error in behind) == (
        served.metric("baton_sequence_steps_lost_total", model="direct") - lost)
    post(served, "direct", 0, number, end=True)


def test_a_step_whose_deadline_passes_takes_no_effect(served, number):
    def y(answer):
        assert answer.status == 200, answer.body
        return next(output["data"][0] for output in answer.json()["outputs"] if output["name"] == "Y")

    assert y(spend(served, number, 0, start=True)) == 1
    running = Later(spend, served, number, 0.5)
    server.wait_for(lambda: served.metric("baton_running_requests", model="slow") == 1, 5, "a step that runs")
    late = spend(served, number, 0, value=10.0, timeout=100_000)  # waits for its turn in the sequence
    assert late.status == 503 and "turn" in late.json()["error"], late.body
    assert y(running.get()) == 2
    stopped = spend(served, number, 20, value=10.0, timeout=200_000)  # is stopped in its run
    assert stopped.status in (503, 504), stopped.body
    assert y(spend(served, number, 0, end=True)) == 3


# -- the life of the model and the server


def test_access_lines_name_the_sequence(served, number):
    post(served, "direct", 1, number, start=True, end=True)
    post(served, "text", 1, f"a\"{number}", start=True, end=True)
    line = next(line for line in served.lines_of("direct") if line.get("sequence") == number)
    assert line["sequence_start"] and line["sequence_end"]
    assert any(line.get("sequence") == f"a\"{number}" for line in served.lines_of("text"))


def test_a_reload_ends_sequences_and_the_next_step_says_so(tmp_path, make_server):
    folder = tmp_path / "models"
    models.write(folder, "m", tracker(), config())
    running = make_server(folder, arguments=["--repository-control", "explicit", "--load-model", "m"])
    assert value_of(post(running, "m", 1, 1, start=True)) == 1
    (folder / "m" / "config.pbtxt").write_text(config("oldest { max_candidate_sequences: 3 }"))
    assert repository.load(running, "m").status == 200
    answer = post(running, "m", 1, 1)
    assert answer.status == 400 and "sequence_start" in answer.json()["error"]
    assert value_of(post(running, "m", 1, 1, start=True)) == 1
    assert running.metric("baton_sequences_begun_total", model="m") == 2
    assert repository.unload(running, "m").status == 200


def test_the_end_of_the_server_serves_what_has_come(tmp_path, make_server):
    folder = tmp_path / "models"
    models.write(folder, "slow", slow_sum(), config(batch=0, controls="", state=SLOW_STATE))
    running = make_server(folder)
    assert spend(running, 1, 0, start=True).status == 200
    steps = [Later(spend, running, 1, 0.3)]
    server.wait_for(lambda: running.metric("baton_running_requests", model="slow") == 1, 5, "a step that runs")
    steps += [Later(spend, running, 1, 0.1) for _ in range(2)]
    waiting = Later(spend, running, 2, 0, start=True)  # another sequence has the only place
    server.wait_for(lambda: running.metric("baton_queued_requests", model="slow") == 3, 5, "steps that wait")
    running.terminate()
    assert [each.get().status for each in (*steps, waiting)] == [200] * 4
    assert running.wait_exit() == 0


# -- as Triton's examples call it


@pytest.mark.parametrize("model", ["direct", "text"])
def test_two_streams_of_numbers_accumulate_side_by_side(served, model, number):
    # The calls of simple_grpc_sequence_stream_infer_client and its aio form, with numbers and with texts.
    values = [11, 7, 5, 3, 2, 0, 1]
    names = [number, next(NUMBERS)] if model == "direct" else [f"{number}a", f"{number}b"]
    answers = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(served.address("grpc")) as raw:
        raw.start_stream(callback=lambda result, error: answers.put((result, error)))
        for name, sign in zip(names, (0, 1)):
            for index, given in enumerate([100 * sign, *values]):
                tensor = tritonclient.grpc.InferInput("INPUT", [1, 1], "INT32")
                tensor.set_data_from_numpy(numpy.full((1, 1), given, numpy.int32))
                raw.async_stream_infer(model_name=model, inputs=[tensor], request_id=f"{name}_{index}",
                                       outputs=[tritonclient.grpc.InferRequestedOutput("OUTPUT")],
                                       sequence_id=name, sequence_start=index == 0,
                                       sequence_end=index == len(values))
        found = {}
        for _ in range(2 * (len(values) + 1)):
            result, error = answers.get(timeout=20)
            assert error is None, error
            found[result.get_response().id] = int(result.as_numpy("OUTPUT")[0, 0])
        raw.stop_stream()
    for name, sign in zip(names, (0, 1)):
        sums = numpy.cumsum([100 * sign, *values]).tolist()
        assert [found[f"{name}_{index}"] for index in range(len(values) + 1)] == sums


@pytest.mark.parametrize("flavour", clients.FLAVOURS)
def test_silero_streams_with_its_state_on_the_server(real_models, tmp_path, make_server, flavour):
    folder = tmp_path / "models"
    data = (real_models / "silero_vad/1/model.onnx").read_bytes()
    session = reference.session(data)
    models.write(folder, "vad", data, """
      sequence_batching { max_sequence_idle_microseconds: 60000000
        state [ { input_name: "state" output_name: "stateN" data_type: TYPE_FP32 dims: [ 2, -1, 128 ] } ] }
    """)
    running = make_server(folder)
    client = clients.Client(flavour, running.address(flavour.split("-")[0]))
    rate = numpy.array(16000, numpy.int64)
    state = numpy.zeros((2, 1, 128), numpy.float32)
    noise = numpy.random.default_rng(5)
    try:
        for index in range(40):
            chunk = noise.uniform(-1, 1, (1, 512)).astype(numpy.float32)
            wanted, state = session.run(None, {"input": chunk, "sr": rate, "state": state})
            arrays = {"input": chunk}
            if any(spec.name == "sr" for spec in session.get_inputs()):
                arrays["sr"] = rate
            made = client.infer("vad", arrays, sequence_id=7, sequence_start=index == 0, sequence_end=index == 39)
            numpy.testing.assert_array_equal(made.arrays["output"], wanted)
            assert "stateN" not in made.arrays
    finally:
        client.close()
