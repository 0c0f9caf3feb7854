"""What ONNX Runtime in Python answers, with the options that baton's sessions have."""

import ctypes

import ml_dtypes
import numpy
import onnx
import onnxruntime


def session(model):
    """A session on a path, or on a model's bytes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model if isinstance(model, bytes) else str(model), options,
                                        providers=["CPUExecutionProvider"])


def answers(path, arrays):
    """{output: array}"""
    made = session(path)
    names = [item.name for item in made.get_outputs()]
    given = {name: _to_runtime(array) for name, array in arrays.items()}
    return dict(zip(names, map(_to_numpy, made.run_with_ort_values(names, given))))


def _to_runtime(array):
    if array.dtype == ml_dtypes.bfloat16:
        bits = array.view(numpy.uint16)
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, onnx.TensorProto.BFLOAT16)
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def _to_numpy(value):
    if value.data_type() != "tensor(bfloat16)":
        return value.numpy()
    # numpy does not know the type, so ONNX Runtime hands it out as memory alone.
    bits = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    return numpy.frombuffer(bits, ml_dtypes.bfloat16).reshape(value.shape())
