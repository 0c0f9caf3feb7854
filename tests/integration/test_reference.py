"""Pages that are generated from the code stand in the repository as the code makes them."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATON = os.environ.get("BATON_BINARY", ROOT / "build" / "release" / "baton")
PAGES = {"configuration": "reference/configuration.md", "command-line": "reference/command-line.md",
         "metrics": "reference/metrics.md", "errors": "reference/errors.md", "decisions": "decision-log.md",
         "man": "reference/baton.1"}


def baton(*words):
    return subprocess.run([BATON, *words], capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.parametrize("page, place", PAGES.items())
def test_a_generated_page_is_current(page, place):
    text = (ROOT / "docs" / place).read_text(encoding="utf-8")
    assert text == baton("reference", page), f"run `baton reference {page} > docs/{place}`"


def test_the_configuration_reference_has_its_old_name_too():
    assert baton("config", "reference") == baton("reference", "configuration")


def test_every_command_is_in_the_command_line_reference():
    page = baton("reference", "command-line")
    commands = re.findall(r"^  ([a-z]+) {2,}", baton("--help").split("Subcommands:")[1], re.MULTILINE)
    assert len(commands) >= 8
    for command in commands:
        assert f"\n## baton {command}\n" in page, command


def test_every_command_is_in_the_man_page():
    page = baton("reference", "man")
    for command in re.findall(r"^## (.*)$", baton("reference", "command-line"), re.MULTILINE):
        assert f"\n.SS {command}\n" in page, command


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_the_man_page_renders_without_a_warning():
    page = ROOT / "docs" / "reference" / "baton.1"
    ended = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], capture_output=True, text=True, check=True,
                           timeout=60)
    assert ended.stderr == ""
    plain = re.sub(r"\x1b\[[\d;]*m|.\x08", "", ended.stdout)
    assert "--model-version INT" in plain and "keeps real-time inference" in plain


def test_the_schema_is_json_and_closed():
    schema = json.loads(baton("config", "schema"))
    assert schema["additionalProperties"] is False
    assert schema["properties"]["listen"]["additionalProperties"] is False


def test_the_build_has_the_version_of_the_source():
    header = (ROOT / "src" / "domain" / "version.h").read_text()
    version = re.search(r'kBatonVersion = "([^"]+)"', header)[1]
    assert baton("version").split()[1] == version
    cache = pathlib.Path(BATON).parent / "CMakeCache.txt"
    if cache.exists():
        assert re.search(r"^CMAKE_PROJECT_VERSION:\w+=(.*)$", cache.read_text(), re.MULTILINE)[1] == version
    assert version not in (ROOT / "CMakeLists.txt").read_text()
