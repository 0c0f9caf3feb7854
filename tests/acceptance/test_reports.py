"""docs/reports.md names tests that exist, and says for every report what shows it or what it waits for."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reports.md"
FOLDER = pathlib.Path(__file__).parent


def rows():
    """(id, shown by, waits for) of each line of the tables."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if re.match(r"\| [^-i]", line)]
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        yield cells[0], cells[2], cells[3].strip(" |") if len(cells) > 3 else ""


def test_every_report_has_a_test_or_says_what_it_waits_for():
    found = list(rows())
    assert len(found) > 60
    for name, shown, waits in found:
        assert shown or waits, name


def test_every_test_named_exists():
    for name, shown, waits in rows():
        for place in re.findall(r"`([\w/.]+(?:::\w+)?)`", shown + waits):
            if "::" in place:
                file, test = place.split("::")
                assert f"def {test}(" in (FOLDER / file).read_text(encoding="utf-8"), f"{name}: {place}"
            elif place.endswith((".cc", "_bench.py")):
                assert (ROOT / place).exists(), f"{name}: {place}"


def test_a_test_that_is_expected_to_fail_is_marked_so():
    for name, shown, _ in rows():
        for file, test, mark in re.findall(r"`([\w.]+)::(\w+)`( †)?", shown):
            text = (FOLDER / file).read_text(encoding="utf-8")
            decorators = text[:text.index(f"def {test}(")].rsplit("\n\n", 1)[-1]
            assert ("xfail" in decorators) == bool(mark), f"{name}: {test}"
