"""Whether a series of samples is flat."""

import numpy

BLOCK = 5  # samples of which the least counts: what is used for a moment is not kept
GROWN_KIB_MAX = 4 * 1024  # over the last half, by the line through it; the allocator's arenas swing by some MiB
GROWN_DESCRIPTORS_MAX, GROWN_THREADS_MAX = 20, 4  # clients come and go, instances too


def growth(samples):
    """By how much the line through the last half rises from its begin to its end."""
    last = numpy.array(samples[len(samples) // 2:], float)
    least = last[:len(last) // BLOCK * BLOCK].reshape(-1, BLOCK).min(axis=1)
    if len(least) < 2:
        return 0.0
    return float(numpy.polyfit(numpy.arange(len(least)), least, 1)[0]) * (len(least) - 1)
