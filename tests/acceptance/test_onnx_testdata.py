"""ONNX's own models with recorded answers, as Debian ships them, all served at once.

Each model is asked over REST and over gRPC. What cannot pass stands in onnx_testdata_exclusions.txt, one line a model:
its name, why, and a remark. An excluded model must fail for just that reason:

not-a-tensor   an input or output is a sequence, an optional or a sparse tensor
datatype       an input or output has a data type that the protocol does not have
load           ONNX Runtime itself does not load it
result         ONNX Runtime itself, called from Python, answers otherwise than recorded or fails
locale         as load, on machines that lack a locale
"""

import pathlib
import subprocess

import ml_dtypes
import numpy
import onnx
import onnx.numpy_helper
import pytest
from tritonclient.utils import InferenceServerException

from harness import clients, models, reference, server

pytestmark = pytest.mark.slow

EXCLUSIONS = pathlib.Path(__file__).with_name("onnx_testdata_exclusions.txt")
RTOL, ATOL = 1e-3, 1e-7  # those of ONNX's own backend tests
FEWEST = 950
SERVED_TYPES = {element for element, _ in models.DATATYPES.values()}


def find_models():
    """{name: folder} of every model with recorded answers."""
    listed = subprocess.run(["dpkg", "-L", "libonnx-testdata"], capture_output=True, text=True, check=False)
    folders = [pathlib.Path(line).parent for line in listed.stdout.splitlines() if line.endswith("/model.onnx")]
    return {folder.name: folder for folder in sorted(folders) if any(folder.glob("test_data_set_*"))}


def read_exclusions():
    lines = [line for line in EXCLUSIONS.read_text().splitlines() if line and not line.startswith("#")]
    return {line.split()[0]: line.split()[1] for line in lines}


MODELS = find_models()
EXCLUDED = read_exclusions()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    if not MODELS:
        pytest.skip("the package libonnx-testdata is not installed; `tools/bootstrap test` installs it")
    repository = tmp_path_factory.mktemp("testdata")
    for name, folder in MODELS.items():
        place = repository / name / "1"
        place.mkdir(parents=True)
        (place / "model.onnx").symlink_to(folder / "model.onnx")
    with server.Server(repository, folder=tmp_path_factory.mktemp("testdata-server")) as running:
        running.wait_settled(MODELS)
        yield running


@pytest.fixture(scope="module", params=["http", "grpc"])
def client(request, served):
    if request.param not in served.ports:
        pytest.skip("gRPC is not served yet: the ports file has no \"grpc\" key")
    made = clients.Client(request.param, served.address(request.param))
    yield made
    made.close()


def graph_ends(folder):
    """(inputs, outputs) of a model as ONNX describes them, weights left out."""
    graph = onnx.load(folder / "model.onnx").graph
    weights = {item.name for item in graph.initializer}
    return [item for item in graph.input if item.name not in weights], list(graph.output)


def read_tensors(data_set, side, ends):
    arrays = []
    for index, end in enumerate(ends):
        path = data_set / f"{side}_{index}.pb"
        if not path.exists():
            continue
        array = onnx.numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))
        if end.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16 and array.dtype == numpy.uint16:
            array = array.view(ml_dtypes.bfloat16)  # recorded as bits
        arrays.append(array)
    return arrays


def data_sets(folder):
    """[({input: array}, [expected array])]"""
    inputs, outputs = graph_ends(folder)
    found = []
    for data_set in sorted(folder.glob("test_data_set_*")):
        arrays = read_tensors(data_set, "input", inputs)
        named = dict(zip([item.name for item in inputs], arrays))
        found.append((named, read_tensors(data_set, "output", outputs)))
    return [item.name for item in outputs], found


def check_equal(found, expected):
    assert tuple(found.shape) == tuple(expected.shape)
    if expected.dtype == numpy.object_:
        texts = [item.encode() if isinstance(item, str) else item for item in expected.ravel()]
        assert [item.encode() if isinstance(item, str) else item for item in found.ravel()] == texts
    elif expected.dtype.kind in "biu":
        numpy.testing.assert_array_equal(found, expected)
    else:
        numpy.testing.assert_allclose(found.astype(numpy.float64), expected.astype(numpy.float64), RTOL, ATOL)
        assert found.dtype == expected.dtype


def check_model(infer, folder):
    names, sets = data_sets(folder)
    for arrays, expected in sets:
        found = infer(arrays)
        for name, array in zip(names, expected):
            check_equal(found[name], array)


def check_reason(reason, folder):
    """That an excluded model fails for the reason that its line gives."""
    inputs, outputs = graph_ends(folder)
    kinds = {item.type.WhichOneof("value") for item in inputs + outputs}
    types = {item.type.tensor_type.elem_type for item in inputs + outputs}
    if reason == "not-a-tensor":
        assert kinds != {"tensor_type"}
    elif reason == "datatype":
        assert kinds == {"tensor_type"} and not types <= SERVED_TYPES
    elif reason == "locale":
        assert "strnorm" in folder.name
    elif reason == "load":
        with pytest.raises(Exception):
            reference.session(folder / "model.onnx")
    else:
        assert reason == "result"
        with pytest.raises(Exception):
            check_model(lambda arrays: reference.answers(folder / "model.onnx", arrays), folder)


def has_locale(reason, folder):
    if reason != "locale":
        return False
    try:
        return bool(reference.session(folder / "model.onnx"))
    except Exception:
        return False


@pytest.mark.parametrize("name", sorted(MODELS))
def test_recorded_answers(client, name):
    folder = MODELS[name]
    if name not in EXCLUDED or has_locale(EXCLUDED[name], folder):
        check_model(lambda arrays: client.infer(name, arrays).arrays, folder)
        return
    try:
        check_model(lambda arrays: client.infer(name, arrays).arrays, folder)
    except (AssertionError, InferenceServerException, OverflowError, KeyError, TypeError, ValueError):
        pass
    else:
        pytest.fail(f"{name} passes: take it out of {EXCLUSIONS.name}")


@pytest.mark.parametrize("name", sorted(EXCLUDED))
def test_an_exclusion_has_the_reason_that_it_gives(name):
    if not MODELS:
        pytest.skip("the package libonnx-testdata is not installed; `tools/bootstrap test` installs it")
    check_reason(EXCLUDED[name], MODELS[name])


def test_enough_models_pass(served):
    assert len(MODELS) - len(EXCLUDED) >= FEWEST
    ready = sum(number == 1 for found, _, number in server.parse_metrics(served.metrics_text())
                if found == "baton_model_ready")
    assert ready >= FEWEST


def test_a_thousand_models_cost_little_when_idle(served):
    # one thread an instance, and memory that follows the models' own; measured after all were asked
    assert served.threads() < len(MODELS) + 50
    assert served.rss_mib() < 1500
