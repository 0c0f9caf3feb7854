#!/usr/bin/env python3
"""Rows that ran of requests whose clients had left, or whose deadlines had passed, while they were queued."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from python_figures import SMOKE, figure, serving  # noqa: E402

from harness import abandoned  # noqa: E402

ROUNDS = 2 if SMOKE else 12  # of each model


def main():
    with serving(abandoned.write) as running:
        rounds = abandoned.Rounds(running)
        made = [each for model in ("single", "batched") for each in rounds.many(model, ROUNDS)]
        control = rounds.control()
        rounds.close()
    lost = 2 * (abandoned.LEAVING + abandoned.LATE)
    if control.for_nobody != 2:
        sys.exit(f"bench: the control ran {control.for_nobody} rows for nobody, not 2: the counters cannot be believed")
    wanted = len(made) * (1 + 2 * abandoned.STAYING)
    answered = sum(each.answered for each in made)
    if answered != wanted:
        sys.exit(f"bench: {answered} of {wanted} requests that were waited for were answered")
    figure("ran_for_nobody", sum(abs(each.for_nobody) for each in made), 0,
           detail=f"{len(made)} rounds: {answered} rows answered, {sum(each.executed for each in made)} ran; "
                  f"{len(made) * lost} requests left or expired in the queue; control: {control.for_nobody} of 5 rows "
                  "ran for clients that left during their run, and are counted",
           method=f"one instance is kept busy for {abandoned.BLOCK_S} s; behind it, over HTTP and gRPC each, "
                  f"{abandoned.LEAVING} requests whose clients close or cancel, {abandoned.LATE} with a deadline of "
                  f"{abandoned.DEADLINE_MS} ms by header, parameter or call, {abandoned.STAYING} that stay; rows that "
                  "ran by nv_inference_exec_count (a model of single rows) and by the statistics of batch sizes")


if __name__ == "__main__":
    main()
