"""Generates the model repositories that the tests serve: small ONNX files and their config.pbtxt."""

import pathlib
import sys
import time

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from harness import reference

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "examples" / "quickstart"))
import mlp  # noqa: E402

OPSET, IR_VERSION = 17, 8

# Open Inference Protocol name -> (ONNX element type, config.pbtxt name)
DATATYPES = {
    "BOOL": (TensorProto.BOOL, "TYPE_BOOL"),
    "UINT8": (TensorProto.UINT8, "TYPE_UINT8"),
    "UINT16": (TensorProto.UINT16, "TYPE_UINT16"),
    "UINT32": (TensorProto.UINT32, "TYPE_UINT32"),
    "UINT64": (TensorProto.UINT64, "TYPE_UINT64"),
    "INT8": (TensorProto.INT8, "TYPE_INT8"),
    "INT16": (TensorProto.INT16, "TYPE_INT16"),
    "INT32": (TensorProto.INT32, "TYPE_INT32"),
    "INT64": (TensorProto.INT64, "TYPE_INT64"),
    "FP16": (TensorProto.FLOAT16, "TYPE_FP16"),
    "FP32": (TensorProto.FLOAT, "TYPE_FP32"),
    "FP64": (TensorProto.DOUBLE, "TYPE_FP64"),
    "BYTES": (TensorProto.STRING, "TYPE_STRING"),
    "BF16": (TensorProto.BFLOAT16, "TYPE_BF16"),
}


def _dims(dims):
    """-1 becomes a named dimension, a different name each."""
    return [f"d{index}" if size == -1 else size for index, size in enumerate(dims)]


def value(name, datatype, dims):
    return helper.make_tensor_value_info(name, DATATYPES[datatype][0], _dims(dims))


def model(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "test", inputs, outputs, list(initializers))
    opset = [helper.make_opsetid("", OPSET)]
    made = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION)
    onnx.checker.check_model(made)
    return made


def constant(name, array):
    return numpy_helper.from_array(numpy.asarray(array), name)


def write(repository, name, made, config=None, versions=(1,), file="model.onnx"):
    """Writes one model; `made` is a ModelProto or bytes, `config` the text of config.pbtxt."""
    data = made if isinstance(made, bytes) else made.SerializeToString()
    folder = pathlib.Path(repository) / name
    for version in versions:
        place = folder / str(version)
        place.mkdir(parents=True, exist_ok=True)
        (place / file).write_bytes(data)
    if config is not None:
        (folder / "config.pbtxt").write_text(config)
    return folder


def add_sub(elements=16, batch=-1):
    """Triton's `simple`: OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1."""
    shape = [batch, elements]
    nodes = [helper.make_node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]),
             helper.make_node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"])]
    inputs = [value(name, "INT32", shape) for name in ("INPUT0", "INPUT1")]
    outputs = [value(name, "INT32", shape) for name in ("OUTPUT0", "OUTPUT1")]
    return model(nodes, inputs, outputs)


def identity(datatype, dims):
    nodes = [helper.make_node("Identity", ["IN"], ["OUT"])]
    return model(nodes, [value("IN", datatype, dims)], [value("OUT", datatype, dims)])


def affine(dims, factor=2.0, offset=1.0, names=("X", "Y")):
    """Y = X * factor + offset, FP32, of any shape."""
    nodes = [helper.make_node("Mul", [names[0], "factor"], ["product"]),
             helper.make_node("Add", ["product", "offset"], [names[1]])]
    constants = [constant("factor", numpy.float32(factor)), constant("offset", numpy.float32(offset))]
    return model(nodes, [value(names[0], "FP32", dims)], [value(names[1], "FP32", dims)], constants)


def slow(rounds, size=384, dims=(-1, 4)):
    """Y = X after `rounds` products of matrices, whatever the batch: a run that takes long.

    The matrices depend on X, so that nothing can be folded, and are multiplied by zero at the end.
    """
    constants = [constant("seed", numpy.full((size, size), 1 / size, numpy.float32)),
                 constant("zero", numpy.float32(0))]
    nodes = [helper.make_node("ReduceMean", ["X"], ["mean"], keepdims=0),
             helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
             helper.make_node("Add", ["seed", "nothing"], ["m0"])]
    for index in range(rounds):
        nodes.append(helper.make_node("MatMul", [f"m{index}", "m0"], [f"m{index + 1}"]))
    nodes += [helper.make_node("ReduceMean", [f"m{rounds}"], ["last"], keepdims=0),
              helper.make_node("Mul", ["last", "zero"], ["lost"]),
              helper.make_node("Add", ["X", "lost"], ["Y"])]
    return model(nodes, [value("X", "FP32", dims)], [value("Y", "FP32", dims)], constants)


def spin(size=8, dims=(-1, 4), least=0):
    """Y = X after as many products of matrices as the input ROUNDS says, and `least` more.

    Its caller picks how long a run takes; warm-up, which sends zeros and ones, does not notice.
    """
    constants = [constant("seed", numpy.full((size, size), 1 / size, numpy.float32)),
                 constant("zero", numpy.float32(0)), constant("least", numpy.int64(least))]
    body_nodes = [helper.make_node("MatMul", ["state", "seed"], ["next"]),
                  helper.make_node("Identity", ["go"], ["again"])]
    body = helper.make_graph(
        body_nodes, "body",
        [helper.make_tensor_value_info("count", TensorProto.INT64, []),
         helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("state", TensorProto.FLOAT, [size, size])],
        [helper.make_tensor_value_info("again", TensorProto.BOOL, []),
         helper.make_tensor_value_info("next", TensorProto.FLOAT, [size, size])])
    nodes = [helper.make_node("ReduceMax", ["ROUNDS"], ["most"], keepdims=0),
             helper.make_node("Add", ["most", "least"], ["trips"]),
             helper.make_node("Loop", ["trips", "", "seed"], ["last"], body=body),
             helper.make_node("ReduceMean", ["last"], ["mean"], keepdims=0),
             helper.make_node("Mul", ["mean", "zero"], ["lost"]),
             helper.make_node("Add", ["X", "lost"], ["Y"])]
    inputs = [value("X", "FP32", dims), value("ROUNDS", "INT64", [dims[0], 1])]
    return model(nodes, inputs, [value("Y", "FP32", dims)], constants)


def one_step():
    """Y = 1 after the product of two N x N matrices: one step that nothing can cut off; warm-up sends a small N."""
    constants = [constant("one", numpy.ones((1, 1), numpy.float32)), constant("zero", numpy.float32(0)),
                 constant("result", numpy.ones((1,), numpy.float32))]
    nodes = [helper.make_node("Concat", ["N", "N"], ["shape"], axis=0),
             helper.make_node("Expand", ["one", "shape"], ["matrix"]),
             helper.make_node("MatMul", ["matrix", "matrix"], ["product"]),
             helper.make_node("ReduceMean", ["product"], ["mean"], keepdims=0),
             helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
             helper.make_node("Add", ["result", "nothing"], ["Y"])]
    return model(nodes, [value("N", "INT64", [1])], [value("Y", "FP32", [1])], constants)


def rounds_a_second(size):
    """How many rounds of `spin` one second takes here."""
    made = reference.session(spin(size).SerializeToString())
    arrays = {"X": numpy.zeros((1, 4), numpy.float32), "ROUNDS": numpy.array([[100]], numpy.int64)}
    made.run(None, arrays)
    return int(100 / min(_timed(made, arrays) for _ in range(3)))


def square():
    """Y = the mean of X times itself, over two dimensions of any size: work grows with the cube of a side."""
    nodes = [helper.make_node("MatMul", ["X", "X"], ["product"]),
             helper.make_node("ReduceMean", ["product"], ["Y"], axes=[1, 2], keepdims=0)]
    return model(nodes, [value("X", "FP32", [-1, -1, -1])], [value("Y", "FP32", [-1])])


def rounds_for(seconds):
    """How many rounds make `slow` take about this long here."""
    made = reference.session(slow(8).SerializeToString())
    row = {"X": numpy.zeros((1, 4), numpy.float32)}
    made.run(None, row)
    best = min(_timed(made, row) for _ in range(5))
    return max(int(8 * seconds / best), 1)


def _timed(made, arrays):
    started = time.perf_counter()
    made.run(None, arrays)
    return time.perf_counter() - started


def tensor_text(side, name, datatype, dims, extra=""):
    dims = ", ".join(str(size) for size in dims)
    return f'{side} [ {{ name: "{name}" data_type: {DATATYPES[datatype][1]} dims: [ {dims} ] {extra} }} ]\n'


def batching_config(max_batch, batching="dynamic_batching { }", extra=""):
    return f"max_batch_size: {max_batch}\n{batching}\n{extra}\n"


SIMPLE_CONFIG = ('name: "simple"\nplatform: "onnxruntime_onnx"\nmax_batch_size: 8\n'
                 + "".join(tensor_text("input", name, "INT32", [16]) for name in ("INPUT0", "INPUT1"))
                 + "".join(tensor_text("output", name, "INT32", [16]) for name in ("OUTPUT0", "OUTPUT1"))
                 + "dynamic_batching { }\n")


def write_simple(repository, name="simple", versions=(1,)):
    return write(repository, name, add_sub(), SIMPLE_CONFIG.replace('"simple"', f'"{name}"'), versions)


def write_mlp(repository):
    config = ('max_batch_size: 32\n' + tensor_text("input", mlp.INPUT, "FP32", [mlp.SIZES[0]])
              + tensor_text("output", mlp.OUTPUT, "FP32", [mlp.SIZES[-1]]) + "dynamic_batching { }\n")
    return write(repository, "mlp", mlp.onnx_file(mlp.layers()), config)


def write_general(repository):
    """The repository of the session's server: one of everything that loads."""
    write_simple(repository)
    for datatype in DATATYPES:
        write(repository, f"identity_{datatype.lower()}", identity(datatype, [-1, -1]))
    write(repository, "flat_bytes", identity("BYTES", [-1]))
    write(repository, "scalar", identity("FP32", []))
    write(repository, "dynamic", affine([-1, -1, -1]))
    write(repository, "slow", slow(rounds_for(0.06)), batching_config(8))
    write(repository, "fixed", affine([3, 4]))
    write(repository, "versions", affine([-1, 2], 1.0, 0.0), "version_policy { all { } }\n", (1, 3))
    write(repository, "versions", affine([-1, 2], 10.0, 0.0), versions=(2,))
    write_mlp(repository)
