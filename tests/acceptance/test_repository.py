"""Model folders and config.pbtxt: what is honoured, what is refused by name, and that a wrong one fails alone."""

import numpy
import onnx
import pytest
import tritonclient.http
from onnx import helper

from harness import models, raw_http, server

AFFINE = models.affine([-1, 4])
IO = models.tensor_text("input", "X", "FP32", [4]) + models.tensor_text("output", "Y", "FP32", [4])
GOOD = "max_batch_size: 8\n" + IO


def body_for(shape, fill=1.0, name="X"):
    count = int(numpy.prod(shape))
    return raw_http.infer_body([(name, "FP32", list(shape), [fill] * count)])


# -- configurations that are refused, each a model of one repository

REFUSED = {  # folder: (ONNX, config.pbtxt, what the reason says)
    "syntax": (AFFINE, "max_batch_size: [", ["config.pbtxt", "line 1"]),
    "unknown_field": (AFFINE, GOOD + "max_bach_size: 3", ["max_bach_size", "line"]),
    "other_name": (AFFINE, 'name: "elsewhere"\n' + GOOD, ["elsewhere", "other_name"]),
    "other_backend": (AFFINE, 'backend: "tensorrt"\n' + GOOD, ["tensorrt", "onnxruntime"]),
    "other_platform": (AFFINE, 'platform: "tensorflow_savedmodel"\n' + GOOD, ["tensorflow_savedmodel"]),
    "no_such_input": (AFFINE, "max_batch_size: 8\n" + models.tensor_text("input", "Z", "FP32", [4]), ['"Z"', "input"]),
    "no_such_output": (AFFINE, "max_batch_size: 8\n" + models.tensor_text("output", "Z", "FP32", [4]),
                       ['"Z"', "output"]),
    "other_type": (AFFINE, "max_batch_size: 8\n" + models.tensor_text("input", "X", "INT64", [4]),
                   ['"X"', "INT64", "FP32"]),
    "other_dims": (AFFINE, "max_batch_size: 8\n" + models.tensor_text("input", "X", "FP32", [5]),
                   ['"X"', "[-1,5]", "[-1,4]"]),
    # U142: dims that include the batch dimension
    "dims_with_batch": (AFFINE, "max_batch_size: 8\n" + models.tensor_text("input", "X", "FP32", [-1, 4]),
                        ['"X"', "[-1,-1,4]", "[-1,4]"]),
    # U142, server#5334, server#1889: the model's own batch dimension is fixed
    "fixed_batch": (models.affine([1, 3, 8, 8]),
                    "max_batch_size: 8\n" + models.tensor_text("input", "X", "FP32", [3, 8, 8]),
                    ['"X"', "max_batch_size", "8", "-1", "[1,3,8,8]"]),
    # U142: the output has no batch dimension
    "output_not_batched": (models.model(
        [helper.make_node("ReduceSum", ["X", "axes"], ["Y"], keepdims=0)], [models.value("X", "FP32", [-1, 4])],
        [models.value("Y", "FP32", [4])], [models.constant("axes", numpy.array([0], numpy.int64))]),
        "max_batch_size: 8\n", ['"Y"', "-1", "[4]"]),
    "format": (AFFINE, "max_batch_size: 8\n" + models.tensor_text("input", "X", "FP32", [4], "format: FORMAT_NCHW"),
               ['"X"', "FORMAT_NCHW", "1 dims", "3"]),
    "zero_dim": (AFFINE, "max_batch_size: 8\n" + models.tensor_text("input", "X", "FP32", [0]), ['"X"', "0"]),
    "negative_batch": (AFFINE, "max_batch_size: -1\n" + IO, ["max_batch_size", "-1"]),
    "huge_batch": (AFFINE, "max_batch_size: 2000000000\n" + IO, ["max_batch_size", "2000000000"]),
    "batching_without_batch": (AFFINE, IO + "dynamic_batching { }", ["dynamic_batching", "max_batch_size"]),
    "preferred_beyond": (AFFINE, GOOD + "dynamic_batching { preferred_batch_size: [ 16 ] }",
                         ["preferred_batch_size", "16", "8"]),
    "level_beyond": (AFFINE, GOOD + "dynamic_batching { priority_levels: 2 default_priority_level: 3 }",
                     ["default_priority_level", "3", "2"]),
    "no_default_level": (AFFINE, GOOD + "dynamic_batching { priority_levels: 2 }", ["default_priority_level"]),
    "ordered_levels": (AFFINE, GOOD + "dynamic_batching { preserve_ordering: true priority_levels: 2 "
                       "default_priority_level: 1 }", ["preserve_ordering", "priority"]),
    "ordered_delay": (AFFINE, GOOD + "dynamic_batching { preserve_ordering: true "
                      "default_queue_policy { timeout_action: DELAY } }", ["preserve_ordering", "DELAY"]),
    "input_twice": (AFFINE, GOOD + models.tensor_text("input", "X", "FP32", [4]), ['"X"', "twice"]),
    "no_type": (AFFINE, 'max_batch_size: 8\ninput [ { name: "X" dims: [ 4 ] } ]', ['"X"', "data_type"]),
    "thread_count": (AFFINE, GOOD + 'parameters { key: "intra_op_thread_count" value { string_value: "many" } }',
                     ["intra_op_thread_count", "many"]),
    "graph_level": (AFFINE, GOOD + "optimization { graph { level: 7 } }", ["graph", "7"]),
    "no_version_left": (AFFINE, GOOD + "version_policy { specific { versions: [ 9 ] } }", ["version"]),
    "many_instances": (AFFINE, GOOD + "instance_group [ { count: 100000 kind: KIND_CPU } ]", ["instance", "100000"]),
    "no_onnx": (b"this is not a model", GOOD, ["ONNX Runtime"]),
    "truncated_onnx": (AFFINE.SerializeToString()[:-40], GOOD, ["ONNX Runtime"]),
    "empty_file": (b"", None, ["ONNX Runtime"]),
    "warmup_fails": (AFFINE, GOOD + 'model_warmup [ { name: "w" batch_size: 1 inputs { key: "X" value { data_type: '
                     'TYPE_FP32 dims: [ 5 ] zero_data: true } } } ]', ["w"]),
    "warmup_file_missing": (AFFINE, GOOD + 'model_warmup [ { name: "w" batch_size: 1 inputs { key: "X" value { '
                            'data_type: TYPE_FP32 dims: [ 4 ] input_data_file: "nothing" } } } ]', ["nothing"]),
    "warmup_file_escapes": (AFFINE, GOOD + 'model_warmup [ { name: "w" batch_size: 1 inputs { key: "X" value { '
                            'data_type: TYPE_FP32 dims: [ 4 ] input_data_file: "../../../../etc/passwd" } } } ]',
                            ["passwd"]),
    # The library that is tested with has no GPU providers.
    "gpu": (AFFINE, GOOD + "instance_group [ { kind: KIND_GPU } ]", ["CUDA provider"]),
    "tensorrt": (AFFINE, GOOD + 'optimization { execution_accelerators { gpu_execution_accelerator '
                 '[ { name: "tensorrt" } ] } }', ["TensorRT provider"]),
    "file_escapes": (AFFINE, GOOD + 'default_model_filename: "../../other/1/model.onnx"', ["model.onnx"]),
}

NOT_HONOURED = {  # folder: (config.pbtxt, the field's path)
    "kind": ("instance_group [ { kind: KIND_MODEL count: 1 } ]", "instance_group.kind"),
    "profile": ('instance_group [ { count: 1 profile: [ "a" ] } ]', "instance_group.profile"),
    "rate_limiter": ("instance_group [ { count: 1 rate_limiter { priority: 2 } } ]", "instance_group.rate_limiter"),
    "sequence": ("sequence_batching { iterative_sequence: true }", "sequence_batching.iterative_sequence"),
    "ensemble": ("ensemble_scheduling { }", "ensemble_scheduling"),
    "cache": ("response_cache { enable: true }", "response_cache"),
    "decoupled": ("model_transaction_policy { decoupled: true }", "model_transaction_policy"),
    "cuda": ("optimization { cuda { graphs: true } }", "optimization.cuda"),
    "agents": ('model_repository_agents { agents [ { name: "checksum" } ] }', "model_repository_agents"),
    "ragged": ('input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] allow_ragged_batch: true } ]',
               "input.allow_ragged_batch"),
    "batch_input": ('batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "B" data_type: TYPE_FP32 } ]',
                    "batch_input"),
    "parameter": ('parameters { key: "cudnn_conv_use_max_workspace" value { string_value: "1" } }',
                  "parameters.cudnn_conv_use_max_workspace"),
}


@pytest.fixture(scope="module", name="broken")
def serve_broken(tmp_path_factory):
    """One server with every wrong configuration and one right one: (server, {folder: reason})."""
    folder = tmp_path_factory.mktemp("broken")
    models.write(folder, "good", AFFINE, GOOD)
    for name, (made, config, _) in REFUSED.items():
        models.write(folder, name, made, config)
    for name, (config, _) in NOT_HONOURED.items():
        models.write(folder, name, AFFINE, "max_batch_size: 8\n" + config)
    (folder / "no_version").mkdir()
    (folder / "no_version" / "config.pbtxt").write_text(GOOD)
    (folder / "no_file" / "1").mkdir(parents=True)
    names = ["good", "no_version", "no_file", *REFUSED, *NOT_HONOURED]
    with server.Server(folder, folder=tmp_path_factory.mktemp("broken-server")) as running:
        yield running, running.wait_settled(names, 60)


def test_a_wrong_model_fails_alone(broken):
    running, states = broken
    assert states["good"] is None
    assert running.infer("good", body_for([2, 4])).json()["outputs"][0]["data"] == [3.0] * 8
    assert running.get("/livez").status == 200
    answer = running.get("/v2/health/ready")
    # kserve#1791: a required model that fails makes the server not ready, and says why
    assert answer.status == 503 and "syntax" in answer.json()["error"] and answer.json()["reason"] == "not_ready"


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_configuration_says_what_was_found_and_expected(broken, name):
    running, states = broken
    reason = states[name]
    assert reason, f"{name} loaded"
    for word in REFUSED[name][2]:
        assert word in reason, reason
    ready = running.get(f"/v2/models/{name}/ready")
    assert ready.status == 503 and ready.json()["error"]
    answer = running.infer(name, body_for([1, 4]))
    assert answer.status == 503 and name in answer.json()["error"], answer.body


@pytest.mark.parametrize("name", NOT_HONOURED)
def test_a_field_that_is_not_honoured_is_refused_by_name(broken, name):
    reason = broken[1][name]
    assert reason and "not honoured" in reason and NOT_HONOURED[name][1] in reason, reason


@pytest.mark.parametrize("name", ["no_version", "no_file"])
def test_a_folder_without_a_model_fails_with_a_reason(broken, name):
    running, states = broken
    assert states[name]
    assert running.get(f"/v2/models/{name}/ready").status == 503


def test_a_failure_tells_its_clients_why(broken):
    # the model's own route tells that model's truth
    running, states = broken
    answer = running.get("/v2/models/other_dims/ready")
    assert "[-1,5]" in answer.json()["error"], answer.body


def test_the_files_of_this_machine_do_not_show(broken):
    running, _ = broken
    for name in ("no_onnx", "truncated_onnx", "file_escapes", "warmup_file_escapes"):
        assert str(running.repositories[0]) not in running.infer(name, body_for([1, 4])).body.decode()


# -- configurations that are honoured


@pytest.fixture(scope="module", name="good")
def serve_good(tmp_path_factory):
    first, second = tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("second")
    models.write(first, "derived", models.affine([-1, 4]))
    models.write(first, "derived_fixed", models.affine([1, 3, 8, 8]))  # U142: falls back to no batching
    models.write(first, "derived_scalar_rows", models.affine([-1]))
    models.write(first, "only_batch", models.affine([-1, 4]), "max_batch_size: 6")  # server#2635, server#458
    models.write(first, "reshaped", models.affine([-1, 2, 2]), "max_batch_size: 8\n"
                 + models.tensor_text("input", "X", "FP32", [4], "reshape { shape: [ 2, 2 ] }")
                 + models.tensor_text("output", "Y", "FP32", [4], "reshape { shape: [ 2, 2 ] }"))
    models.write(first, "scalar_rows", models.affine([-1]), "max_batch_size: 8\n"
                 + models.tensor_text("input", "X", "FP32", [1], "reshape { shape: [ ] }")
                 + models.tensor_text("output", "Y", "FP32", [1], "reshape { shape: [ ] }"))
    models.write(first, "chosen_output", models.add_sub(), "max_batch_size: 8\n"
                 + models.tensor_text("output", "OUTPUT1", "INT32", [16]))
    models.write(first, "other_file", models.affine([-1, 4]), GOOD + 'default_model_filename: "net.onnx"',
                 file="net.onnx")
    models.write(first, "instances", models.affine([-1, 4]), GOOD + "instance_group [ { count: 3 kind: KIND_CPU } ]")
    models.write(first, "tuned", models.affine([-1, 4]), GOOD + "optimization { graph { level: 2 } }\n"
                 'parameters { key: "intra_op_thread_count" value { string_value: "2" } }\n'
                 'parameters { key: "enable_mem_arena" value { string_value: "0" } }')
    warm = models.write(first, "warm", models.identity("BYTES", [-1, -1]), "max_batch_size: 4\n"
                        'model_warmup [ { name: "file" batch_size: 1 inputs { key: "IN" value { data_type: TYPE_STRING '
                        'dims: [ 2 ] input_data_file: "words" } } }, { name: "zero" batch_size: 2 count: 2 inputs { '
                        'key: "IN" value { data_type: TYPE_STRING dims: [ 1 ] zero_data: true } } } ]')
    (warm / "warmup").mkdir()
    words = ["käse".encode(), b"\xff\x00"]  # server#6161: not ASCII
    (warm / "warmup" / "words").write_bytes(b"".join(len(word).to_bytes(4, "little") + word for word in words))
    write_external(first)
    write_versions(second)
    (first / ".git").mkdir()
    (first / "README.md").write_text("not a model")
    with server.Server(first, second, folder=tmp_path_factory.mktemp("good-server")) as running:
        yield running.wait_ready()


def write_optional(folder):
    """Y = A + B, where B has a default in the file."""
    made = models.model([helper.make_node("Add", ["A", "B"], ["Y"])],
                        [models.value("A", "FP32", [2]), models.value("B", "FP32", [2])],
                        [models.value("Y", "FP32", [2])], [models.constant("B", numpy.array([5, 6], numpy.float32))])
    models.write(folder, "optional", made, models.tensor_text("input", "A", "FP32", [2])
                 + models.tensor_text("input", "B", "FP32", [2], "optional: true")
                 + models.tensor_text("output", "Y", "FP32", [2]))


def write_external(folder):
    """Weights in a file of their own beside the model."""
    made = models.model([helper.make_node("Mul", ["X", "weights"], ["Y"])], [models.value("X", "FP32", [-1, 64])],
                        [models.value("Y", "FP32", [-1, 64])],
                        [models.constant("weights", numpy.arange(64, dtype=numpy.float32))])
    place = folder / "external" / "1"
    place.mkdir(parents=True)
    onnx.save_model(made, place / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)


def write_versions(folder):
    factors = {1: 10.0, 2: 20.0, 3: 30.0, 10: 100.0}
    for name, config in (("latest", None), ("two", "version_policy { latest { num_versions: 2 } }"),
                         ("all", "version_policy { all { } }"),
                         ("some", "version_policy { specific { versions: [ 1, 3 ] } }")):
        for version, factor in factors.items():
            models.write(folder, name, models.affine([-1, 1], factor, 0.0), config, (version,))
    for ignored in ("007", "x1", "-4", "4.bak"):  # leading zeros and other names are no versions
        models.write(folder, "latest", models.affine([-1, 1], 7.0, 0.0), None, (ignored,))


def test_without_a_configuration_one_is_derived(good):
    config = good.get("/v2/models/derived/config").json()
    assert config["max_batch_size"] > 1 and config["input"][0]["dims"] == [4] and "dynamic_batching" in config
    fixed = good.get("/v2/models/derived_fixed/config").json()
    assert fixed["max_batch_size"] == 0 and fixed["input"][0]["dims"] == [1, 3, 8, 8]
    assert good.infer("derived_fixed", body_for([1, 3, 8, 8])).status == 200
    assert good.get("/v2/models/derived_scalar_rows/config").json()["max_batch_size"] == 0


def test_what_a_configuration_leaves_out_is_completed(good):
    # server#2635, server#458
    config = good.get("/v2/models/only_batch/config").json()
    assert config["max_batch_size"] == 6
    assert [(item["name"], item["dims"]) for item in config["input"] + config["output"]] == [("X", [4]), ("Y", [4])]
    assert good.infer("only_batch", body_for([6, 4])).status == 200
    assert good.infer("only_batch", body_for([7, 4])).status == 400


def test_reshape_hides_the_models_own_shape(good):
    answer = good.infer("reshaped", body_for([3, 4])).json()["outputs"][0]
    assert answer["shape"] == [3, 4] and answer["data"] == [3.0] * 12
    answer = good.infer("scalar_rows", body_for([3, 1])).json()["outputs"][0]
    assert answer["shape"] == [3, 1] and answer["data"] == [3.0] * 3


def test_an_optional_input_may_be_left_out(make_server, tmp_path):
    write_optional(tmp_path / "models")
    running = make_server(tmp_path / "models")
    a = ("A", "FP32", [2], [1.0, 1.0])
    assert running.infer("optional", raw_http.infer_body([a])).json()["outputs"][0]["data"] == [6, 7]
    both = raw_http.infer_body([a, ("B", "FP32", [2], [1.0, 2.0])])
    assert running.infer("optional", both).json()["outputs"][0]["data"] == [2, 3]


def test_named_outputs_are_a_choice(good):
    metadata = good.get("/v2/models/chosen_output").json()
    assert [item["name"] for item in metadata["outputs"]] == ["OUTPUT1"]


def test_outputs_that_are_not_chosen_stay_away(good):
    ones = [(name, "INT32", [1, 16], [1] * 16) for name in ("INPUT0", "INPUT1")]
    answer = good.infer("chosen_output", raw_http.infer_body(ones)).json()
    assert [item["name"] for item in answer["outputs"]] == ["OUTPUT1"]


@pytest.mark.parametrize("name", ["other_file", "instances", "tuned"])
def test_settings_are_honoured_and_shown(good, name):
    assert good.infer(name, body_for([2, 4])).json()["outputs"][0]["data"] == [3.0] * 8
    config = good.get(f"/v2/models/{name}/config").json()
    if name == "instances":
        assert sum(group["count"] for group in config["instance_group"]) == 3
    if name == "other_file":
        assert config["default_model_filename"] == "net.onnx"
    if name == "tuned":
        assert config["optimization"]["graph"]["level"] == 2


def test_warm_up_samples_run(good):
    # server#6161
    sample = numpy.array([[b"a", b"b"]], numpy.object_)
    client = tritonclient.http.InferenceServerClient(good.address("http"))
    item = tritonclient.http.InferInput("IN", [1, 2], "BYTES")
    item.set_data_from_numpy(sample)
    assert client.infer("warm", [item]).as_numpy("OUT").tolist() == sample.tolist()
    client.close()


def test_external_data_is_found_beside_the_model(good):
    answer = good.infer("external", body_for([1, 64], 2.0)).json()["outputs"][0]["data"]
    assert answer == [2.0 * index for index in range(64)]


@pytest.mark.parametrize("name, versions", [("latest", ["10"]), ("two", ["3", "10"]), ("all", ["1", "2", "3", "10"]),
                                            ("some", ["1", "3"])])
def test_the_version_policy_picks_versions(good, name, versions):
    assert sorted(good.get(f"/v2/models/{name}").json()["versions"]) == sorted(versions)
    for version in ("1", "2", "3", "10"):
        answer = good.infer(name, body_for([1, 1]), version=version)
        assert answer.status == (200 if version in versions else 404)
        if version in versions:
            assert answer.json()["outputs"][0]["data"] == [int(version) * 10.0]
            assert answer.json()["model_version"] == version
    assert good.infer(name, body_for([1, 1])).json()["model_version"] == max(versions, key=int)


def test_models_of_several_repositories_are_served_together(good):
    assert good.infer("derived", body_for([1, 4])).status == 200
    assert good.infer("latest", body_for([1, 1])).status == 200


def test_what_is_no_model_is_passed_over(good):
    assert good.get("/v2/models/README.md").status == 404
    assert good.get("/v2/models/.git").status == 404


def test_a_name_in_two_repositories_is_said(make_server, tmp_path):
    for place in ("a", "b"):
        models.write(tmp_path / place, "same", AFFINE, GOOD)
        models.write(tmp_path / place, f"only_{place}", AFFINE, GOOD)
    running = make_server(tmp_path / "a", tmp_path / "b", ready=False)
    states = running.wait_settled(["same", "only_a", "only_b"])
    assert states["only_a"] is None and states["only_b"] is None
    assert states["same"] and "two repositories" in states["same"] or "both" in states["same"], states


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_repository_that_is_none_ends_the_start_with_one_sentence(tmp_path, kind):
    place = tmp_path / "nothing"
    if kind == "file":
        place.write_text("x")
    started = server.Server(place, folder=tmp_path / "server")
    with pytest.raises(AssertionError, match="baton ended with 1"):
        started.start()
    assert "nothing" in started.log()


def test_an_empty_repository_serves_nothing_and_is_ready(make_server, tmp_path):
    (tmp_path / "empty").mkdir()
    running = make_server(tmp_path / "empty")
    assert running.get("/v2/models/x").status == 404


def test_a_batch_that_differs_from_single_runs_is_found_at_load(make_server, tmp_path):
    # server#2135, server#2231: results of a batch equal those of single runs, or the model is not batched
    mixes = models.model([helper.make_node("ReduceSum", ["X", "axes"], ["sum"], keepdims=1),
                          helper.make_node("Add", ["X", "sum"], ["Y"])],
                         [models.value("X", "FP32", [-1, 4])], [models.value("Y", "FP32", [-1, 4])],
                         [models.constant("axes", numpy.array([0], numpy.int64))])
    models.write(tmp_path / "models", "derived", mixes)
    models.write(tmp_path / "models", "asked", mixes, "max_batch_size: 8\ndynamic_batching { }")
    running = make_server(tmp_path / "models", ready=False)
    states = running.wait_settled(["derived", "asked"])
    assert states["derived"] is None
    assert running.get("/v2/models/derived/config").json()["max_batch_size"] == 0
    assert states["asked"] and "max_batch_size: 0" in states["asked"]
