"""The multi-layer perceptron of the quickstart: seeded weights, an ONNX file, and numpy's answer.

ONNX files are protobuf messages; the few fields that this model needs are written by hand, so that
the quickstart does not have to install the onnx package. Field numbers are those of onnx.proto.
"""

import numpy

SIZES = (512, 2048, 2048, 2048, 16)
INPUT, OUTPUT = "input", "output"
_FLOAT = 1
_IR_VERSION, _OPSET = 8, 17


def layers():
    """[(weights [inputs, outputs], bias [outputs])], the same on every machine."""
    random = numpy.random.Generator(numpy.random.PCG64(20260730))
    result = []
    for inputs, outputs in zip(SIZES, SIZES[1:]):
        scale = numpy.float32(numpy.sqrt(2.0 / inputs))
        weights = random.standard_normal((inputs, outputs), dtype=numpy.float32) * scale
        bias = random.standard_normal(outputs, dtype=numpy.float32) * numpy.float32(0.1)
        result.append((weights, bias))
    return result


def answer(parameters, batch):
    """What the model gives for [rows, 512], by numpy."""
    for weights, bias in parameters[:-1]:
        batch = numpy.maximum(batch @ weights + bias, 0)
    weights, bias = parameters[-1]
    return batch @ weights + bias


def _varint(value):
    result = bytearray()
    while value > 127:
        result.append(value & 127 | 128)
        value >>= 7
    result.append(value)
    return bytes(result)


def _number(field, value):
    return _varint(field << 3) + _varint(value)


def _bytes(field, value):
    value = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _tensor(name, array):
    dims = b"".join(_number(1, size) for size in array.shape)
    raw = array.astype("<f4").tobytes()
    return dims + _number(2, _FLOAT) + _bytes(8, name) + _bytes(9, raw)


def _value(name, size):
    dims = _bytes(1, _bytes(2, "batch")) + _bytes(1, _number(1, size))
    tensor_type = _number(1, _FLOAT) + _bytes(2, dims)
    return _bytes(1, name) + _bytes(2, _bytes(1, tensor_type))


def _node(operator, inputs, output):
    names = b"".join(_bytes(1, name) for name in inputs)
    return names + _bytes(2, output) + _bytes(3, output + "_node") + _bytes(4, operator)


def onnx_file(parameters):
    """The model as the bytes of an .onnx file."""
    nodes, tensors, last = [], [], INPUT
    for index, (weights, bias) in enumerate(parameters):
        final = index == len(parameters) - 1
        product = OUTPUT if final else f"sum{index}"
        nodes.append(_node("Gemm", (last, f"weights{index}", f"bias{index}"), product))
        if not final:
            nodes.append(_node("Relu", (product,), f"hidden{index}"))
            last = f"hidden{index}"
        tensors += [_tensor(f"weights{index}", weights), _tensor(f"bias{index}", bias)]
    graph = b"".join(_bytes(1, node) for node in nodes) + _bytes(2, "mlp")
    graph += b"".join(_bytes(5, tensor) for tensor in tensors)
    graph += _bytes(11, _value(INPUT, SIZES[0])) + _bytes(12, _value(OUTPUT, SIZES[-1]))
    opset = _bytes(1, "") + _number(2, _OPSET)
    header = _number(1, _IR_VERSION) + _bytes(2, "baton quickstart")
    return header + _bytes(7, graph) + _bytes(8, opset)


def samples(rows):
    """Seeded input rows [rows, 512]."""
    random = numpy.random.Generator(numpy.random.PCG64(7))
    return random.standard_normal((rows, SIZES[0]), dtype=numpy.float32)
