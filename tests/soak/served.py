"""What the soak serves, and what right answers are."""

import numpy
from onnx import helper

import mlp
from harness import models, reference, sequences

IDLE_S = 2  # of a sequence that is given up
FACTORS = (2.0, 3.0)  # of `reloaded`, in turn
RUN_S = 0.02  # of `slow`
STARTUP = ("simple", "mlp", "floats", "texts", "slow", "direct", "oldest", "reloaded", "scaled")
SETTINGS = """version: 1
repository: {{control: explicit, startup_models: [{startup}]}}
required_models: [{startup}]
limits: {{shared_memory: 64MiB, body: 16MiB, queue_items: 512}}
"""


def weights(seed, width=256):
    """Y = the mean of X times a matrix of 256 KiB."""
    matrix = numpy.random.default_rng(seed).random((width, width), numpy.float32)
    nodes = [helper.make_node("MatMul", ["X", "W"], ["wide"]),
             helper.make_node("ReduceMean", ["wide"], ["Y"], axes=[1], keepdims=1)]
    return models.model(nodes, [models.value("X", "FP32", [-1, width])], [models.value("Y", "FP32", [-1, 1])],
                        [models.constant("W", matrix)])


def scaled_config(count):
    return models.batching_config(4, extra=f"instance_group [ {{ count: {count} kind: KIND_CPU }} ]")


def write_reloaded(folder, turn):
    models.write(folder, "reloaded", models.affine([-1, 4], FACTORS[turn % 2], 0.0), models.batching_config(8))


def write(folder):
    models.write_simple(folder)
    models.write_mlp(folder)
    models.write(folder, "floats", models.identity("FP32", [-1, -1]))
    models.write(folder, "texts", models.identity("BYTES", [-1, -1]))
    models.write(folder, "slow", models.slow(models.rounds_for(RUN_S)), models.batching_config(2))
    models.write(folder, "direct", sequences.tracker(), sequences.config(idle_s=IDLE_S, batch=64))
    models.write(folder, "oldest", sequences.tracker(), sequences.config(
        "oldest { max_candidate_sequences: 64 }", idle_s=IDLE_S))
    write_reloaded(folder, 0)
    models.write(folder, "scaled", models.affine([-1, 4]), scaled_config(1))
    models.write(folder, "coming", weights(0), models.batching_config(8))
    models.write(folder, "broken", weights(0).SerializeToString()[:-4096] + bytes(4096))
    models.write(folder, "fails", weights(0), 'model_warmup [ { name: "w" batch_size: 1 inputs { key: "X" value { '
                 'data_type: TYPE_FP32 dims: [ 5 ] zero_data: true } } } ]')


class Expected:
    """Inputs and answers of the perceptron, which take a while to compute."""

    def __init__(self, folder):
        session = reference.session(folder / "mlp" / "1" / "model.onnx")
        self.rows = numpy.random.default_rng(1).random((8, mlp.SIZES[0]), numpy.float32)
        self.answers = session.run(None, {mlp.INPUT: self.rows})[0]
