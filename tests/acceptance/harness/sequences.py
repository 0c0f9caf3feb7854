"""Models that keep sequences, and their configurations."""

import numpy
from onnx import TensorProto, helper

from harness import models

CONTROLS = """
  control_input [ { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
                  { name: "END" control [ { kind: CONTROL_SEQUENCE_END fp32_false_true: [ 0, 1 ] } ] },
                  { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ] } ] },
                  { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] } ]
"""
STATE = 'state [ { input_name: "SUM" output_name: "NEXT" data_type: TYPE_INT32 dims: [ 1 ] } ]'


def tracker(correlation="UINT64"):
    """OUTPUT = NEXT = SUM + INPUT; FLAGS = START, END, READY; ID = CORRID. INPUT of 1000 and above fails."""
    nodes = [helper.make_node("Gather", ["table", "INPUT"], ["value"], axis=0),
             helper.make_node("Add", ["SUM", "value"], ["NEXT"]),
             helper.make_node("Identity", ["NEXT"], ["OUTPUT"]),
             helper.make_node("Cast", ["END"], ["end"], to=TensorProto.INT32),
             helper.make_node("Cast", ["READY"], ["ready"], to=TensorProto.INT32),
             helper.make_node("Concat", ["START", "end", "ready"], ["FLAGS"], axis=1),
             helper.make_node("Identity", ["CORRID"], ["ID"])]
    inputs = [models.value(name, datatype, [-1, 1]) for name, datatype in (
        ("INPUT", "INT32"), ("SUM", "INT32"), ("START", "INT32"), ("END", "FP32"), ("READY", "BOOL"),
        ("CORRID", correlation))]
    outputs = [models.value("OUTPUT", "INT32", [-1, 1]), models.value("NEXT", "INT32", [-1, 1]),
               models.value("FLAGS", "INT32", [-1, 3]), models.value("ID", correlation, [-1, 1])]
    table = models.constant("table", numpy.arange(1000, dtype=numpy.int32))
    return models.model(nodes, inputs, outputs, [table])


def config(strategy="direct { }", idle_s=60, extra="", state=STATE, controls=CONTROLS, batch=8):
    return (f"max_batch_size: {batch}\n{extra}\nsequence_batching {{ {strategy}\n"
            f"max_sequence_idle_microseconds: {int(idle_s * 1e6)}\n{controls}\n{state} }}\n")
