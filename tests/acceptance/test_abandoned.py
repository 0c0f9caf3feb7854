"""What was queued and lost its client or its deadline never runs; bench/abandoned_bench.py repeats it more often."""

import pytest

from harness import abandoned, server


@pytest.fixture(name="rounds", scope="module")
def make_rounds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("abandoned")
    abandoned.write(folder)
    with server.Server(folder, folder=tmp_path_factory.mktemp("abandoned-server")) as running:
        running.wait_ready()
        made = abandoned.Rounds(running)
        yield made
        made.close()


@pytest.mark.parametrize("model", ["single", "batched"])
def test_nothing_runs_for_nobody(rounds, model):
    # server#8982, server#3581, server#4618, server#7532
    for made in rounds.many(model, 3):
        assert made.answered == 1 + 2 * abandoned.STAYING
        assert made.executed == made.answered


def test_the_counters_show_what_runs_for_nobody(rounds):
    assert rounds.control().for_nobody == 2
