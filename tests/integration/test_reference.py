"""Pages that are generated from the code stand in the repository as the code makes them."""

import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATON = os.environ.get("BATON_BINARY", ROOT / "build" / "release" / "baton")


def config(what):
    return subprocess.run([BATON, "config", what], capture_output=True, text=True, check=True, timeout=60).stdout


def test_the_configuration_reference_is_current():
    page = ROOT / "docs" / "reference" / "configuration.md"
    assert page.read_text(encoding="utf-8") == config("reference"), "run `baton config reference` into it"


def test_the_schema_is_json_and_closed():
    schema = json.loads(config("schema"))
    assert schema["additionalProperties"] is False
    assert schema["properties"]["listen"]["additionalProperties"] is False
