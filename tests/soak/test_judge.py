"""The soak's judgement: what grows is found, what swings is not."""

import numpy

import judge


def samples(seconds, leak_kib_a_second):
    noise = numpy.random.default_rng(3)
    spikes = numpy.where(noise.random(seconds) < 0.3, 60_000, 0)
    return (150_000 + noise.normal(0, 1500, seconds) + spikes + leak_kib_a_second * numpy.arange(seconds)).tolist()


def test_memory_that_swings_is_flat():
    for seconds in (120, 600):
        assert judge.growth(samples(seconds, 0)) < judge.GROWN_KIB_MAX


def test_a_leak_of_a_page_a_request_is_found():
    for seconds in (120, 600):
        assert judge.growth(samples(seconds, 4 * 120)) > judge.GROWN_KIB_MAX


def test_what_grew_before_the_last_half_is_no_growth():
    assert judge.growth([100] * 50 + [200] * 100) < 1e-6
