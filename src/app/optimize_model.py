"""A smaller or faster form of an ONNX model, compared with the original on recorded inputs. Run by `baton optimize`.

Reads one JSON object from its first argument:
  model, version, source      the model's name, its version, its ONNX file
  folder, target              its folder in the repository, the folder to make
  kind                        fp16 or int8
  max_batch_size              rows that a batch may have; 0: the model does not batch; -1: nobody has said
  inputs                      a folder of .npz files, each a request by the model's input names; empty: none
  shapes                      {input: whole shape} of made-up inputs
  seed, most_difference       most_difference: of any output, as a share of its largest value; negative: no bound
  replace, json               booleans
Exit status: 0 made; 1 it cannot be made, or differs too much; 2 something that was asked for is wrong.
"""

import json
import logging
import os
import pathlib
import re
import shutil
import statistics
import sys
import tempfile
import time

WINDOWS, WINDOW_S = 9, 0.1
DERIVED_ROWS = 32
LARGE = 1_500_000_000  # bytes; above, weights go beside the model's file
NUMPY = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64",
         "tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(int16)": "int16", "tensor(int8)": "int8",
         "tensor(uint64)": "uint64", "tensor(uint32)": "uint32", "tensor(uint16)": "uint16", "tensor(uint8)": "uint8",
         "tensor(bool)": "bool"}
# What is quantised: matrices with constant weights. Convolutions in whole numbers are not there on every provider.
QUANTISED = ["MatMul", "Gemm", "Attention", "LSTM", "Gather", "EmbedLayerNormalization"]


class Wrong(Exception):
    """What was asked for is wrong."""


class Failed(Exception):
    """It cannot be made."""


def load_tools():
    try:
        import numpy
        import onnx
        import onnxruntime
    except ImportError as error:
        raise Wrong(f"{sys.executable} has no module \"{error.name}\": make an environment with `python3 -m venv DIR`, "
                    "`DIR/bin/pip install onnx onnxruntime`, and name it with --python DIR/bin/python") from error
    return numpy, onnx, onnxruntime


# -- making it


def to_fp16(onnx, source, made):
    from onnxruntime.transformers import float16
    model = onnx.load(source)
    converted = float16.convert_float_to_float16(model, keep_io_types=True)
    save(onnx, converted, made)


def to_int8(onnx, source, made):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    large = pathlib.Path(source).stat().st_size > LARGE
    quantize_dynamic(source, made, weight_type=QuantType.QInt8, op_types_to_quantize=QUANTISED,
                     use_external_data_format=large)
    if not any(node.op_type.endswith("Integer") or node.op_type.startswith("DynamicQuantize")
               for node in onnx.load(made, load_external_data=False).graph.node):
        raise Failed("it has no matrices of constant weights that could be quantised")


def save(onnx, model, made):
    beside = model.ByteSize() > LARGE
    onnx.save_model(model, made, save_as_external_data=beside, location=pathlib.Path(made).name + ".data")


# -- requests


def concrete(shape, rows, batches):
    fixed = [size if isinstance(size, int) and size > 0 else 1 for size in shape]
    if batches and fixed:
        fixed[0] = rows
    return fixed


def made_up(numpy, specs, rows, batches, shapes, seed, uniform=False):
    random = numpy.random.Generator(numpy.random.PCG64(seed))
    request = {}
    for spec in specs:
        if spec.type not in NUMPY:
            raise Wrong(f"input \"{spec.name}\" is {spec.type}, which is not made up: record inputs (--inputs)")
        shape = shapes.get(spec.name) or concrete(spec.shape, rows, batches)
        kind = numpy.dtype(NUMPY[spec.type])
        draw = random.random if uniform else random.standard_normal
        request[spec.name] = (draw(shape).astype(kind) if kind.kind == "f"
                              else random.integers(0, 2, shape).astype(kind))
    return request


def recorded(numpy, folder, specs):
    files = sorted(pathlib.Path(folder).glob("*.npz"))
    if not files:
        raise Wrong(f"{folder}: it holds no .npz file")
    requests = []
    for file in files:
        try:
            with numpy.load(file) as arrays:  # without pickles: a file runs no code
                request = {name: arrays[name] for name in arrays.files}
        except (ValueError, OSError) as error:
            raise Wrong(f"{file}: {error}") from error
        missing = [spec.name for spec in specs if spec.name not in request]
        other = sorted(set(request) - {spec.name for spec in specs})
        if missing or other:
            raise Wrong(f"{file}: " + (f"input \"{missing[0]}\" is missing" if missing
                                       else f"the model has no input \"{other[0]}\""))
        requests.append(request)
    return requests


def derived_rows(specs):
    """As baton derives it: every first dimension is open, and no tensor has that one alone."""
    return DERIVED_ROWS if all(len(spec.shape) > 1 and not isinstance(spec.shape[0], int) for spec in specs) else 0


# -- comparing


def open_session(onnxruntime, file):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library has a class for each code
        raise Failed(f"ONNX Runtime does not open what was made: {str(error).splitlines()[0]}") from error


def run(session, request, what):
    try:
        return session.run(None, request)
    except Exception as error:
        raise Failed(f"{what} does not run a request: {str(error).splitlines()[0]}") from error


class Difference:
    """Of one output over all requests."""

    def __init__(self, numpy, name):
        self.numpy, self.name = numpy, name
        self.largest = self.total = self.scale = 0.0
        self.count = self.equal = self.rows = self.same_class = 0

    def add(self, before, after):
        numpy = self.numpy
        if before.shape != after.shape or before.dtype != after.dtype:
            raise Failed(f"output \"{self.name}\" was {before.dtype}{list(before.shape)} and is now "
                         f"{after.dtype}{list(after.shape)}")
        self.count += before.size
        self.equal += int((before == after).sum())
        if before.dtype.kind not in "fiu" or before.size == 0:
            return
        wide, other = before.astype(numpy.float64), after.astype(numpy.float64)
        apart = numpy.abs(wide - other)
        apart[numpy.isnan(wide) & numpy.isnan(other)] = 0
        apart[wide == other] = 0  # infinities too
        self.largest = max(self.largest, float(numpy.nan_to_num(apart, nan=numpy.inf).max()))
        self.total += float(apart.sum())
        finite = wide[numpy.isfinite(wide)]
        self.scale = max(self.scale, float(numpy.abs(finite).max()) if finite.size else 0.0)
        if before.dtype.kind == "f" and before.ndim >= 2 and before.shape[-1] > 1:
            self.rows += before.size // before.shape[-1]
            self.same_class += int((wide.argmax(-1) == other.argmax(-1)).sum())

    def share(self):
        """Of the output's largest value."""
        if self.count and self.scale == 0 and self.largest == 0:
            return 0.0 if self.equal == self.count else 1.0
        return self.largest / self.scale if self.scale else float("inf")

    def report(self):
        found = {"output": self.name, "largest_difference": self.largest,
                 "mean_difference": self.total / max(self.count, 1), "largest_share": self.share(),
                 "equal_elements": self.equal / max(self.count, 1)}
        if self.rows:
            found["same_largest_index"] = self.same_class / self.rows
        return found


def compare(numpy, before, after, requests):
    differences = [Difference(numpy, output.name) for output in before.get_outputs()]
    for request in requests:
        pairs = zip(run(before, request, "the model"), run(after, request, "what was made"))
        for difference, (old, new) in zip(differences, pairs):
            difference.add(numpy.asarray(old), numpy.asarray(new))
    return differences


def window(session, request):
    """Seconds a run, over a window."""
    count, started = 0, time.perf_counter()
    while True:
        session.run(None, request)
        count += 1
        spent = time.perf_counter() - started
        if spent >= WINDOW_S:
            return spent / count


def race(before, after, request):
    """Median milliseconds of both, and of their ratio: windows take turns."""
    for session in (before, after):
        session.run(None, request)
    pairs = [(window(before, request), window(after, request)) for _ in range(WINDOWS)]
    return {"before_ms": 1000 * statistics.median(old for old, _ in pairs),
            "after_ms": 1000 * statistics.median(new for _, new in pairs),
            "speedup": statistics.median(old / new for old, new in pairs)}


def rows_of(request, rows):
    """The same request with so many rows."""
    return {name: array[[index % len(array) for index in range(rows)]] for name, array in request.items()}


def speeds(before, after, requests, rows, batches):
    raced = [{"rows": len(next(iter(requests[0].values()))) if batches else 1} | race(before, after, requests[0])]
    if batches and rows > raced[0]["rows"]:
        raced.append({"rows": rows} | race(before, after, rows_of(requests[0], rows)))
    return raced


def batch_difference(numpy, session, requests, rows):
    """The most that a batch differs from single runs: |a - b| over 1 + max(|a|, |b|).

    Numbers that are quantised while it runs share one scale over the batch, so that its rows depend on each other.
    """
    found = 0.0
    for request in requests:
        many = rows_of(request, rows)
        together = run(session, many, "what was made")
        for row in range(rows):
            alone = run(session, {name: array[row:row + 1] for name, array in many.items()}, "what was made")
            for one, batch in zip(alone, together):
                if one.dtype.kind == "f" and one.size and batch.shape[0] == rows:
                    wide, other = one.astype(numpy.float64), batch[row:row + 1].astype(numpy.float64)
                    found = max(found, float((numpy.abs(wide - other) / (
                        1 + numpy.maximum(numpy.abs(wide), numpy.abs(other)))).max()))
    return found


# -- the folder


def copy_folder(ask, part):
    """The model's folder without its versions; the configuration under the new name."""
    def versions(folder, names):
        return [name for name in names if name.isdigit()] if pathlib.Path(folder) == pathlib.Path(ask["folder"]) else []
    shutil.copytree(ask["folder"], part, ignore=versions, dirs_exist_ok=True)
    config = pathlib.Path(part) / "config.pbtxt"
    if config.exists():
        text = re.sub(r'(?m)^(\s*name\s*:\s*)"[^"]*"', lambda found: found[1] + json.dumps(
            pathlib.Path(ask["target"]).name), config.read_text(encoding="utf-8"), count=1) if named(config) else None
        if text is not None:
            config.write_text(text, encoding="utf-8")


def allow_in_batches(config, difference, rows):
    """Lets a batch differ as much again and again, where that is more than the data type's own tolerance."""
    allowed = min(4 * difference, 1.0)
    if allowed <= 1e-4:
        return
    derived = f"max_batch_size: {rows}\ndynamic_batching {{ }}\n"
    text = config.read_text(encoding="utf-8") if config.exists() else derived
    config.write_text(f'{text.rstrip()}\n# Dynamic quantisation: the rows of a batch share a scale.\n'
                      f'parameters {{ key: "batch_tolerance" value {{ string_value: "{allowed:.2g}" }} }}\n',
                      encoding="utf-8")


def joined(numpy, requests):
    """The first rows of requests as one; of the first alone where their shapes differ."""
    try:
        return {name: numpy.concatenate([request[name][:1] for request in requests]) for name in requests[0]}
    except ValueError:
        return requests[0]


def named(config):
    """The configuration says its own name, at its top level."""
    depth = 0
    for line in config.read_text(encoding="utf-8").splitlines():
        bare = re.sub(r'"(\\.|[^"\\])*"', '""', line.split("#", 1)[0])
        if depth == 0 and re.match(r"\s*name\s*:", bare):
            return True
        depth += len(re.findall(r"[\[{]", bare)) - len(re.findall(r"[\]}]", bare))
    return False


def size_of(folder):
    return sum(file.stat().st_size for file in pathlib.Path(folder).iterdir() if file.is_file())


def text_of(report):
    lines = [f"{report['model']}/{report['version']} as {report['kind']}: {report['target']}",
             f"  size      {report['bytes_before'] / 1e6:.1f} MB -> {report['bytes_after'] / 1e6:.1f} MB"]
    for each in report["speed"]:
        lines.append(f"  speed     {each['rows']} row{'s' if each['rows'] > 1 else ''}: {each['before_ms']:.3f} ms -> "
                     f"{each['after_ms']:.3f} ms, {each['speedup']:.2f} times as fast")
    for each in report["accuracy"]:
        same = (f", largest at the same index in {each['same_largest_index']:.1%}" if "same_largest_index" in each
                else "")
        lines.append(f"  accuracy  {each['output']}: at most {each['largest_difference']:.3g} apart, "
                     f"{each['largest_share']:.2%} of its largest value; "
                     f"{each['mean_difference']:.3g} on average{same}")
    if "batch_difference" in report:
        lines.append(f"  batches   rows differ from single runs by {report['batch_difference']:.3g} of 1 + their size: "
                     "quantised while it runs, a batch has one scale")
    lines.append(f"  over      {report['requests']} {'recorded' if report['recorded'] else 'made-up'} "
                 f"request{'s' if report['requests'] != 1 else ''}"
                 + ("" if report["recorded"] else "; --inputs compares on recorded ones"))
    return "\n".join(lines)


def optimise(ask):
    numpy, onnx, onnxruntime = load_tools()
    target, source = pathlib.Path(ask["target"]), ask["source"]
    if target.exists() and not ask["replace"]:
        raise Wrong(f"{target} is there already: --replace makes it anew")
    before = open_session(onnxruntime, source)
    specs = before.get_inputs()
    rows = ask["max_batch_size"] if ask["max_batch_size"] >= 0 else derived_rows(specs + before.get_outputs())
    batches = rows > 0
    unknown = sorted(set(ask["shapes"]) - {spec.name for spec in specs})
    if unknown:
        raise Wrong(f"--shape: the model has no input \"{unknown[0]}\"")
    requests = (recorded(numpy, ask["inputs"], specs) if ask["inputs"]
                else [made_up(numpy, specs, 1, batches, ask["shapes"], ask["seed"] + index) for index in range(8)])
    target.parent.mkdir(parents=True, exist_ok=True)
    part = tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent)  # a hidden folder is no model
    try:
        copy_folder(ask, part)
        place = pathlib.Path(part) / "1"
        place.mkdir()
        made = str(place / pathlib.Path(source).name)
        try:
            (to_fp16 if ask["kind"] == "fp16" else to_int8)(onnx, source, made)
        except Failed:
            raise
        except Exception as error:  # the tools raise what they like
            raise Failed(f"ONNX Runtime's tools do not convert it: {error or type(error).__name__}") from error
        after = open_session(onnxruntime, made)
        differences = compare(numpy, before, after, requests)
        report = {"model": ask["model"], "version": ask["version"], "kind": ask["kind"], "target": str(target),
                  "bytes_before": pathlib.Path(source).stat().st_size, "bytes_after": size_of(place),
                  "requests": len(requests), "recorded": bool(ask["inputs"]),
                  "accuracy": [difference.report() for difference in differences],
                  "speed": speeds(before, after, requests, rows, batches)}
        if batches and ask["kind"] == "int8":
            various = [joined(numpy, requests), joined(numpy, [
                made_up(numpy, specs, 1, batches, ask["shapes"], ask["seed"] + 100 + index, uniform=True)
                for index in range(min(rows, 8))])]
            report["batch_difference"] = batch_difference(numpy, after, various, min(rows, 8))
            allow_in_batches(pathlib.Path(part) / "config.pbtxt", report["batch_difference"], rows)
        worst = max(differences, key=Difference.share, default=None)
        if worst and 0 <= ask["most_difference"] < worst.share():
            raise Failed(f"output \"{worst.name}\" differs by {worst.share():.3g} of its largest value, more than "
                         f"--max-difference {ask['most_difference']:g}; nothing was made")
        os.chmod(part, 0o755)
        if target.exists():
            shutil.rmtree(target)
        os.rename(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return report


def main():
    ask = json.loads(sys.argv[1])
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    logging.getLogger().setLevel(logging.ERROR)  # the tools advise on standard error
    try:
        report = optimise(ask)
    except (Wrong, Failed) as error:
        print(f"baton: {error}", file=sys.stderr)
        return 2 if isinstance(error, Wrong) else 1
    except OSError as error:
        print(f"baton: {error}", file=sys.stderr)
        return 1
    print(json.dumps(report) if ask["json"] else text_of(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
