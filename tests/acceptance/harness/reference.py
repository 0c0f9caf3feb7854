"""What ONNX Runtime in Python answers, with the options that baton's sessions have."""

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
    return dict(zip(names, made.run(names, arrays)))
