#!/usr/bin/env python3
"""Serves a mix of models and lets everything happen at once; checks answers, memory and descriptors. See README.md.

    tests/soak/soak.py      SOAK_SECONDS (600), SOAK_RATE (120/s), SOAK_SEED, BATON_BINARY
"""

import asyncio
import collections
import contextlib
import itertools
import os
import pathlib
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "acceptance"), str(HERE.parents[1] / "examples" / "quickstart")]

import grpc  # noqa: E402
import numpy  # noqa: E402
from tritonclient.grpc import service_pb2_grpc  # noqa: E402

import changes  # noqa: E402
import judge  # noqa: E402
import kinds  # noqa: E402
import over_grpc  # noqa: E402,F401  fills the table of kinds
import over_http  # noqa: E402,F401
import served  # noqa: E402
import wire  # noqa: E402
from harness import server  # noqa: E402

IN_FLIGHT_MAX = 2000
CHANNELS = 4
LAST_ANSWERS_S, SETTLE_S = 60, 30
SPARE_DESCRIPTORS, SPARE_THREADS = 4, 2
FAILURES_SHOWN = 12


class Soak:
    """What a kind of traffic may use, and what has become of all."""

    def __init__(self, running, folder, seed):
        self.running, self.folder = running, folder
        self.order, self.numbers = (numpy.random.default_rng([seed, stream]) for stream in range(2))
        self.ids = itertools.count(1)
        self.expected = served.Expected(folder)
        self.coming = []
        self.factors, self.idle_s = served.FACTORS, served.IDLE_S
        self.changes = kinds.Kind("changes", 0, None, frozenset(), False)
        self.ended = asyncio.Event()
        self.pending = set()
        self.held = 0
        self.samples = []
        self.http, self.metrics = (wire.Pool(running.ports[name]) for name in ("http", "metrics"))
        self.channels = [self.new_channel() for _ in range(CHANNELS)]
        self.stubs = [service_pb2_grpc.GRPCInferenceServiceStub(channel) for channel in self.channels]

    def new_channel(self):
        return grpc.aio.insecure_channel(self.running.address("grpc"), [
            ("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)])

    def choose(self, options):
        return options[int(self.numbers.integers(len(options)))]

    @property
    def channel(self):
        return self.choose(self.channels)

    @property
    def stub(self):
        return self.choose(self.stubs)

    async def one(self, kind, call):
        try:
            await call(self)
            kind.good += 1
        except kinds.Refused as refused:
            kind.refused[refused.reason] = kind.refused.get(refused.reason, 0) + 1
            if refused.reason not in kind.may | kinds.UNDER_LOAD:
                self.fail(kind, f"refused: {refused.reason}")
        except Exception as problem:  # pylint: disable=broad-except
            self.fail(kind, f"{type(problem).__name__}: {str(problem)[:400]}")

    def fail(self, kind, text):
        kind.failures.append(text)
        if sum(len(each.failures) for each in self.all_kinds()) <= FAILURES_SHOWN:
            print(f"   {kind.name}: {text}", flush=True)

    def all_kinds(self):
        return [*kinds.KINDS, self.changes]

    def start(self, kind):
        if len(self.pending) >= IN_FLIGHT_MAX:
            self.held += 1
            return
        task = asyncio.create_task(self.one(kind, kind.call))
        self.pending.add(task)
        task.add_done_callback(self.pending.discard)

    async def offer(self, seconds, rate):
        """Open loop: each leaves when its time comes."""
        weights = numpy.array([kind.weight for kind in kinds.KINDS])
        begin = due = time.monotonic()
        while due < begin + seconds:
            due += float(self.order.exponential(1 / rate))
            await asyncio.sleep(max(due - time.monotonic(), 0))
            self.start(kinds.KINDS[int(self.order.choice(len(weights), p=weights / weights.sum()))])

    async def watch(self):
        """A sample a second, a line a minute."""
        begin = time.monotonic()
        for second in itertools.count(1):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), max(begin + second - time.monotonic(), 0))
            if self.ended.is_set():
                return
            self.samples.append((self.running.rss_mib() * 1024, self.running.descriptors(), self.running.threads()))
            if second % 60 == 0:
                print(f"minute {second // 60}: {self.line()}", flush=True)

    def line(self):
        refused = collections.Counter()
        for kind in self.all_kinds():
            refused.update(kind.refused)
        good, failed = (sum(counts) for counts in zip(*((kind.good, len(kind.failures)) for kind in self.all_kinds())))
        told = ", ".join(f"{reason} {count}" for reason, count in refused.most_common())
        rss, descriptors, threads = self.samples[-1]
        return (f"{good} good, {sum(refused.values())} refused ({told}), {failed} failed, {len(self.pending)} pending; "
                f"{rss / 1024:.0f} MiB, {descriptors} descriptors, {threads} threads")

    async def run(self, seconds, rate):
        around = [asyncio.create_task(each) for each in (self.watch(), changes.make_changes(self))]
        await self.offer(seconds, rate)
        self.ended.set()
        await asyncio.gather(*around)
        if self.pending:
            await asyncio.wait(self.pending, timeout=LAST_ANSWERS_S)
        stuck = len(self.pending)
        for each in (self.http, self.metrics):
            each.close()
        await asyncio.gather(*(channel.close() for channel in self.channels))
        return stuck


def is_idle(running, before):
    """Nothing in flight, no sequence, no region, and the descriptors of an idle server."""
    return (running.metric("inference_requests_in_flight") == 0 and running.metric("baton_sequences_live") == 0
            and running.descriptors() <= before + SPARE_DESCRIPTORS)


def judgements(soak, stuck, before):
    """{what: what is wrong with it, or None}"""
    found = {kind.name: kind.verdict() for kind in soak.all_kinds()}
    found["nothing hangs"] = f"{stuck} unanswered" if stuck else None
    found["the server keeps up"] = f"{soak.held} not sent" if soak.held else None
    memory, descriptors, threads = (judge.growth(series) for series in zip(*soak.samples))
    print(f"over the last half: memory {memory:+.0f} KiB, descriptors {descriptors:+.1f}, threads {threads:+.1f}")
    if server.binary().resolve().parent.name == "release":
        found["memory is flat"] = f"{memory:.0f} KiB" if memory > judge.GROWN_KIB_MAX else None
    found["descriptors are flat"] = f"{descriptors:.1f}" if descriptors > judge.GROWN_DESCRIPTORS_MAX else None
    found["threads are flat"] = f"{threads:.1f}" if threads > judge.GROWN_THREADS_MAX else None
    try:
        server.wait_for(lambda: is_idle(soak.running, before), SETTLE_S, "an idle server")
        found["nothing is left behind"] = None
    except AssertionError as problem:
        found["nothing is left behind"] = f"{problem}; {soak.running.descriptors()} descriptors, {before} before"
    return found


async def soak_it(running, folder, seed, seconds, rate):
    soak = Soak(running, folder, seed)
    return soak, await soak.run(seconds, rate)


def main():
    seconds, rate = (float(os.environ.get(name, default)) for name, default in (
        ("SOAK_SECONDS", 600), ("SOAK_RATE", 120)))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the server ends with it
    seed = int(os.environ.get("SOAK_SEED") or time.time_ns() % 1_000_000)
    print(f"soak: {seconds:.0f} s, {rate:.0f}/s, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="baton-soak-") as place:
        folder = pathlib.Path(place, "models")
        served.write(folder)
        settings = pathlib.Path(place, "baton.yaml")
        settings.write_text(served.SETTINGS.format(startup=", ".join(served.STARTUP)), encoding="utf-8")
        running = server.Server(folder, folder=pathlib.Path(place, "server"), arguments=("--config", settings))
        running.start().wait_ready()
        try:
            before = running.descriptors()
            soak, stuck = asyncio.run(soak_it(running, folder, seed, seconds, rate))
            found = judgements(soak, stuck, before)
        except BaseException:
            print("\n".join(running.log().splitlines()[-30:]))
            raise
        finally:
            status = running.stop()
        found["the server ends with status 0"] = f"status {status}" if status != 0 else None
        bad = {name: text for name, text in found.items() if text}
        for name, text in bad.items():
            print(f"FAILED {name}: {text}")
        if bad:
            print("\n".join(running.log().splitlines()[-30:]))
    print(f"{len(found) - len(bad)} passed, {len(bad)} failed", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
