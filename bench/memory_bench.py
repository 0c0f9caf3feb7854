#!/usr/bin/env python3
"""Memory that hostile requests cost: at their peak, and what is left of it afterwards."""

import gzip
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from python_figures import SMOKE, figure, serving  # noqa: E402

from harness import malformed, models, raw_http, server  # noqa: E402

LIMIT_MIB = 64  # limits.body, whose default is served with
LEFT_MIB_MAX = 2
TIMES = 1 if SMOKE else 5
CHUNKS = 300_000
LAST_S = 10


def answer(running, data):
    with raw_http.Connection(running.ports["http"], timeout_s=60) as connection:
        connection.send(data)
        return connection.read()


def bomb(running):
    packed = gzip.compress(bytes(500 << 20))
    assert len(packed) < 600_000
    for _ in range(TIMES):
        found = answer(running, raw_http.post(malformed.INFER, packed, [("Content-Encoding", "gzip")]))
        assert found.status == 413, found
    return f"{TIMES} times {len(packed) / 1e6:.2f} MB of gzip that expand to 500 MiB"


def chunks(running):
    data = f"POST {malformed.INFER} HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    data += b"1\r\n \r\n" * CHUNKS + b"0\r\n\r\n"
    for _ in range(TIMES):
        found = answer(running, data)
        assert found.status == 413, found
    return f"{TIMES} times {CHUNKS:,} chunks of one byte"


def wrong(running):
    cases = malformed.connections()
    for name, (data, statuses) in cases.items():
        found = answer(running, data)
        assert found is not None and found.status in statuses, (name, found)
    assert len(cases) >= 100
    return f"{len(cases)} malformed requests, each of another kind"


def good(running):
    found = answer(running, raw_http.post(malformed.INFER, malformed.GOOD))
    assert found.status == 200, found


def measure(attack):
    """(MiB at the peak, MiB left, what was sent), over a fresh server that has answered."""
    with serving(models.write_simple) as running:
        for _ in range(100):
            good(running)
        before = running.rss_mib()
        pathlib.Path(f"/proc/{running.process.pid}/clear_refs").write_text("5", encoding="ascii")  # the peak anew
        what = attack(running)
        peak = running.peak_rss_mib() - before
        good(running)
        try:
            server.wait_for(lambda: running.rss_mib() - before <= LEFT_MIB_MAX, LAST_S, "memory given back")
        except AssertionError:
            pass  # the figure says so
        return peak, running.rss_mib() - before, what


def main():
    found = {attack.__name__: measure(attack) for attack in (bomb, chunks, wrong)}
    told = "; ".join(f"{what}: {peak:+.1f} MiB at the peak, {left:+.1f} afterwards"
                     for peak, left, what in found.values())
    figure("memory_peak_mib", max(peak for peak, _, _ in found.values()), LIMIT_MIB, detail=told,
           method="VmHWM, reset before, over VmRSS before; a fresh server for each, the default limits.body of "
                  f"{LIMIT_MIB} MiB; the worst of the three")
    figure("memory_left_mib", max(left for _, left, _ in found.values()), LEFT_MIB_MAX, detail=told,
           method=f"VmRSS within {LAST_S} s afterwards over VmRSS before; the worst of the three")


if __name__ == "__main__":
    main()
