#!/usr/bin/env python3
"""The longest wait of the lowest priority level under a flood of the highest, over its bound."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from python_figures import SMOKE, figure, serving  # noqa: E402

from harness import flood  # noqa: E402

AGEING_S = 1.0  # limits.priority_ageing, whose default is served with
URGENT_S = 0.9  # a deadline ranks the flood before requests without one
ROUNDS = 1 if SMOKE else 5


def main():
    with serving(flood.write) as running:
        made = [flood.measure(running, urgent_s=URGENT_S) for _ in range(ROUNDS)]
    lasting = [each for each in made if each.lasted(AGEING_S)]
    if not lasting and not SMOKE:
        sys.exit("bench: the flood ran dry in every round; the machine is too busy")
    worst = max(made, key=lambda each: max(each.waits) / each.bound_s(AGEING_S))
    figure("longest_low_wait", max(worst.waits) / worst.bound_s(AGEING_S), 1,
           detail=f"longest wait {max(worst.waits):.2f} s, bound {worst.bound_s(AGEING_S):.2f} s, of which the queue "
                  f"{worst.drain_s:.2f} s; overtaken by {worst.overtaken} requests; the flood lasted through "
                  f"{len(lasting)} of {len(made)} rounds",
           method=f"{flood.FLOODERS} clients of the highest of {flood.LEVELS} levels, each with one request at a time, "
                  f"due within {URGENT_S:g} s, for an instance that takes {flood.RUN_S * 1000:.0f} ms a row; "
                  f"{flood.LOWS} of the lowest behind them; "
                  "bound: limits.priority_ageing (1 s) for each level above, a second, and the longest that as many "
                  "answers took as wait")


if __name__ == "__main__":
    main()
