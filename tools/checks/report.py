"""Findings, and allowlists whose every line must have a reason and a use."""

import dataclasses
import pathlib


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


@dataclasses.dataclass
class Entry:
    line: int
    fields: tuple
    reason: str
    used: bool = False


class Allowlist:
    """Lines of `field... reason`, a fixed number of fields, `#` starts a comment line."""

    def __init__(self, root, relative, fields):
        self.relative = relative
        self.entries = []
        self.findings = []
        path = pathlib.Path(root, relative)
        if not path.exists():
            return
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if not text.strip() or text.lstrip().startswith("#"):
                continue
            parts = text.split(None, fields)
            if len(parts) <= fields:
                message = f"an entry is {fields} fields and a reason; this one has no reason"
                self.findings.append(Finding(relative, number, "allowlist", message))
                continue
            self.entries.append(Entry(number, tuple(parts[:fields]), parts[fields]))

    def allows(self, *alternatives):
        """Whether an entry equals one of the field tuples; the entry then counts as used."""
        found = False
        for entry in self.entries:
            if entry.fields in alternatives:
                entry.used = True
                found = True
        return found

    def stale(self):
        for entry in self.entries:
            if not entry.used:
                message = f"`{' '.join(entry.fields)}` allows nothing any more; remove the line"
                yield Finding(self.relative, entry.line, "stale-allowlist", message)


def print_report(tool, findings, looked_at):
    """Prints findings and one summary line; returns the exit status."""
    for finding in sorted(set(findings)):
        print(finding)
    count = len(set(findings))
    verdict = "no findings" if count == 0 else f"{count} finding{'s' if count > 1 else ''}"
    print(f"{tool}: {verdict} in {looked_at}")
    return 1 if count else 0
