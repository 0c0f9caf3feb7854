"""The table of kinds of traffic, and how a kind says what became of it."""

import dataclasses
import typing

# A refusal's reason and its number over HTTP, as docs/reference/errors.md has them.
STATUS = {"invalid": 400, "too_large": 413, "not_found": 404, "method_not_allowed": 405, "unsupported": 501,
          "not_ready": 503, "queue_full": 503, "overloaded": 503, "deadline_queued": 503, "deadline_running": 503}
UNDER_LOAD = frozenset({"queue_full", "overloaded"})  # what any request may meet
DEADLINES = ("deadline_queued", "deadline_running")


class Refused(Exception):
    """A refusal with a documented reason."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


@dataclasses.dataclass
class Kind:
    name: str
    weight: float
    call: typing.Callable
    may: frozenset  # reasons of refusals that it may meet beside those of load
    must: bool  # at least one of them has to be met in a run
    good: int = 0
    refused: dict = dataclasses.field(default_factory=dict)
    failures: list = dataclasses.field(default_factory=list)

    def verdict(self):
        """What is wrong with this kind's part in a run, or None."""
        if self.failures:
            return f"{len(self.failures)} failed, the first: {self.failures[0]}"
        if self.good == 0:
            return "nothing of it was answered"
        if self.must and not any(reason in self.refused for reason in self.may):
            return f"met none of {', '.join(sorted(self.may))}"
        return None


KINDS = []


def kind(weight, *may, must=False):
    """Adds a coroutine function of one argument, the Soak, to the table."""
    def add(call):
        KINDS.append(Kind(call.__name__, weight, call, frozenset(may), must))
        return call
    return add
