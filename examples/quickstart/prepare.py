#!/usr/bin/env python3
"""Builds the quickstart's model repository from the wheels that tools/bootstrap fetched.

    prepare.py WHEELS MODELS

MODELS gets one folder a model, laid out as Triton's users know it: NAME/[config.pbtxt] and
NAME/VERSION/model.onnx. Files are written beside their place and renamed, so a broken run leaves none.
"""

import json
import pathlib
import sys
import zipfile

import mlp

SILERO = "silero_vad/data/silero_vad_16k_op15.onnx"
MAGIKA = "magika/models/standard_v3_3/"

MLP_CONFIG = f"""name: "mlp"
backend: "onnxruntime"
max_batch_size: 32
input [ {{ name: "{mlp.INPUT}" data_type: TYPE_FP32 dims: [ {mlp.SIZES[0]} ] }} ]
output [ {{ name: "{mlp.OUTPUT}" data_type: TYPE_FP32 dims: [ {mlp.SIZES[-1]} ] }} ]
dynamic_batching {{ }}
"""


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.rename(path)


def member(wheels, pattern, name):
    found = sorted(wheels.glob(pattern))
    if not found:
        raise SystemExit(f"quickstart: no wheel {pattern} in {wheels}; run `tools/bootstrap run`")
    with zipfile.ZipFile(found[-1]) as wheel:
        return wheel.read(name)


def main():
    wheels, models = (pathlib.Path(word) for word in sys.argv[1:3])
    write(models / "silero_vad/1/model.onnx", member(wheels, "silero_vad-*.whl", SILERO))
    write(models / "magika/1/model.onnx", member(wheels, "magika-*.whl", MAGIKA + "model.onnx"))
    settings = json.loads(member(wheels, "magika-*.whl", MAGIKA + "config.min.json"))
    labels = "\n".join(settings["target_labels_space"]) + "\n"
    write(models / "magika/labels.txt", labels.encode())
    write(models / "mlp/1/model.onnx", mlp.onnx_file(mlp.layers()))
    write(models / "mlp/config.pbtxt", MLP_CONFIG.encode())


if __name__ == "__main__":
    main()
