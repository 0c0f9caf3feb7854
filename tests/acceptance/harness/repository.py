"""Writing model folders while a server looks at them, and asking it what it serves."""

import json
import pathlib

from harness import raw_http


def index(running, ready=False):
    """{(name, version): (state, reason)}"""
    body = b'{"ready":true}' if ready else b""
    answer = running.request("/v2/repository/index", method="POST", body=body)
    assert answer.status == 200, answer.body
    return {(row["name"], row["version"]): (row["state"], row["reason"]) for row in answer.json()}


def load(running, model, **parameters):
    """The answer; a parameter `file:1/model.onnx` is given as files={...} of base64 texts."""
    return command(running, model, "load", parameters)


def unload(running, model, **parameters):
    return command(running, model, "unload", parameters)


def command(running, model, what, parameters):
    files = parameters.pop("files", {})
    sent = parameters | {f"file:{name}": text for name, text in files.items()}
    body = json.dumps({"parameters": sent}).encode() if sent else b""
    return running.request(f"/v2/repository/models/{model}/{what}", method="POST", body=body, timeout_s=60)


def instance_threads(running, model):
    """How many threads of the process run instances of the model."""
    count = 0
    for task in pathlib.Path(f"/proc/{running.process.pid}/task").iterdir():
        try:
            count += (task / "comm").read_text().startswith(f"{model}#")
        except OSError:  # it has just ended
            pass
    return count


def ask(running, model, value=1.0, shape=(1, 4), version=None):
    """Status and first element of Y for X filled with `value`."""
    count = 1
    for size in shape:
        count *= size
    body = raw_http.infer_body([("X", "FP32", list(shape), [value] * count)])
    answer = running.infer(model, body, version)
    return answer.status, answer.json()["outputs"][0]["data"][0] if answer.status == 200 else answer.body
