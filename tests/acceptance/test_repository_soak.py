"""Models come and go for long: memory, threads and descriptors stay flat. 40 s, times BATON_SOAK."""

import os

import numpy
import pytest
from onnx import helper

from harness import models, repository, server

FACTOR = int(os.environ.get("BATON_SOAK", "1"))
CYCLES, RELOADS, FAILURES = 500 * FACTOR, 500 * FACTOR, 300 * FACTOR
# Over the last half; the model's weights are 1,024. The allocator's arenas swing by some MiB: what is fitted is the
# least of each BLOCK rounds, which a leak raises like every other.
MOST_KIB_A_CYCLE, BLOCK = 12, 20
WIDTH = 512


def weights(seed):
    """Y = the mean of X times a matrix of 1 MiB."""
    matrix = numpy.random.default_rng(seed).random((WIDTH, WIDTH), numpy.float32)
    nodes = [helper.make_node("MatMul", ["X", "W"], ["wide"]),
             helper.make_node("ReduceMean", ["wide"], ["Y"], axes=[1], keepdims=1)]
    return models.model(nodes, [models.value("X", "FP32", [-1, WIDTH])], [models.value("Y", "FP32", [-1, 1])],
                        [models.constant("W", matrix)])


@pytest.fixture(name="running")
def serve(make_server, tmp_path):
    folder = tmp_path / "models"
    models.write_simple(folder)
    models.write(folder, "m", weights(0), "max_batch_size: 0\n")
    models.write(folder, "broken", weights(0).SerializeToString()[:-4096] + bytes(4096))
    models.write(folder, "fails", weights(0), 'model_warmup [ { name: "w" batch_size: 1 inputs { key: "X" value { '
                 'data_type: TYPE_FP32 dims: [ 5 ] zero_data: true } } } ]')
    running = make_server(folder, arguments=["--repository-control", "explicit", "--load-model", "simple"])
    return running, folder


def slope_kib(samples):
    """Of a line through the last half, in KiB a sample."""
    last = numpy.array(samples[len(samples) // 2:]) * 1024
    least = last[:len(last) // BLOCK * BLOCK].reshape(-1, BLOCK).min(axis=1)
    return float(numpy.polyfit(numpy.arange(len(least)) * BLOCK, least, 1)[0])


def gone(running, model):
    return repository.index(running)[(model, "1")][0] == "UNAVAILABLE"


def check_flat(running, rounds, once):
    before = None
    samples = []
    for number in range(rounds):
        once(number)
        samples.append(running.rss_mib())
        if number == rounds // 2:
            before = (running.threads(), running.descriptors())
    assert (running.threads(), running.descriptors()) <= (before[0] + 1, before[1] + 2)
    grown = slope_kib(samples)
    print(f"{rounds} rounds: {samples[0]:.1f} MiB at first, {samples[-1]:.1f} at last, {grown:.2f} KiB a round")
    assert grown <= MOST_KIB_A_CYCLE, samples


@pytest.mark.slow
def test_memory_stays_flat_while_a_model_is_loaded_and_unloaded(running):
    # server#4966, server#2023, server#4764, server#3320, server#6836, server#7020
    running, _ = running

    def cycle(_):
        assert repository.load(running, "m").status == 200
        assert repository.unload(running, "m").status == 200
        server.wait_for(lambda: gone(running, "m"), 20, "its end")
    check_flat(running, CYCLES, cycle)


@pytest.mark.slow
def test_memory_stays_flat_while_a_model_is_reloaded(running):
    # server#4528
    running, folder = running

    def cycle(number):
        models.write(folder, "m", weights(number + 1))
        assert repository.load(running, "m").status == 200
        server.wait_for(lambda: repository.instance_threads(running, "m") == 1, 20, "an end of the old engine")
    check_flat(running, RELOADS, cycle)


@pytest.mark.slow
def test_memory_stays_flat_while_loads_fail(running):
    # server#8969
    running, _ = running

    def cycle(number):
        model = "fails" if number % 2 else "broken"
        assert repository.load(running, model).status == 400
    check_flat(running, FAILURES, cycle)
