"""What the benchmarks in Python share: the harness of the acceptance tests, and one line of JSON a figure."""

import contextlib
import json
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "acceptance"))
from harness import server  # noqa: E402

SMOKE = "BATON_BENCH_SMOKE" in os.environ


@contextlib.contextmanager
def serving(write, *arguments):
    """A fresh server on the repository that `write(folder)` makes."""
    with tempfile.TemporaryDirectory(prefix="baton-bench-") as place:
        repository = pathlib.Path(place, "models")
        repository.mkdir()
        write(repository)
        with server.Server(repository, folder=pathlib.Path(place, "server"), arguments=arguments) as running:
            yield running.wait_ready()


def figure(name, measured, to_reach, *, detail, method):
    """Prints a figure that is to be at most `to_reach`."""
    reached = measured <= to_reach
    print(f"{name}: {measured:.3f} (to reach: <= {to_reach:g}){'' if reached else '  MISSED'}\n  {detail}\n  {method}")
    print("figure " + json.dumps({"figure": name, "measured": measured, "bound": "<=", "to_reach": to_reach,
                                  "reached": reached, "detail": detail, "method": method, "smoke": SMOKE}), flush=True)
