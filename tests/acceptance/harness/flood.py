"""A flood of the highest priority level, and how long requests of the lowest wait behind it."""

import asyncio
import dataclasses
import time

from harness import models, raw_http

SIZE = 224  # of the matrices: a run takes longer than a hand-over between threads, so that an instance makes it
LEVELS = 3
PATIENCE_S = 1.0  # what a request without a deadline is taken to have; never above the ageing
RUN_S = 0.004
FLOODERS = 128  # so many wait at any time: the flood lasts through half a second in which the client stands still
LOWS, APART_S = 5, 0.1
ANSWER_S = 60


def write(folder):
    models.write(folder, "levels", models.spin(SIZE, least=2), models.batching_config(
        1, f"dynamic_batching {{ priority_levels: {LEVELS} default_priority_level: 2 }}"))


@dataclasses.dataclass
class Flooded:
    waits: list  # seconds, of the requests of the lowest level
    overtaken: int  # answers of the highest level while the first of them waited
    drain_s: float  # the longest that as many answers took as wait in the queue

    def bound_s(self, ageing_s):
        """What docs/triton-differences.md says: ageing for each level above, a second at most, and the queue."""
        return ageing_s * (LEVELS - 1) + min(PATIENCE_S, ageing_s) + self.drain_s

    def lasted(self, ageing_s):
        """Whether the flood never ran dry: else a request of the lowest level ran because nobody else was there."""
        return min(self.waits) >= ageing_s * (LEVELS - 1) - 0.01


async def _ask(reader, writer, request, may_expire=False):
    writer.write(request)
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), ANSWER_S)
    assert head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 503") if may_expire else b"HTTP/1.1 200"), head
    at = head.lower().index(b"content-length:") + 15
    await reader.readexactly(int(head[at:head.index(b"\r\n", at)]))
    return time.monotonic()


async def _run(port, requests, seconds):
    ends, stop = [], asyncio.Event()

    async def connect():
        return await asyncio.open_connection(raw_http.HOST, port)

    async def flooder():
        reader, writer = await connect()
        while not stop.is_set():
            ends.append(await _ask(reader, writer, requests[1], may_expire=True))
        writer.close()

    async def low(after_s):
        reader, writer = await connect()
        await asyncio.sleep(after_s)
        began = time.monotonic()
        ended = await _ask(reader, writer, requests[LEVELS])
        ends.append(ended)
        writer.close()
        return began, ended
    flood = [asyncio.create_task(flooder()) for _ in range(FLOODERS)]
    while len(ends) < 2 * FLOODERS:
        await asyncio.sleep(0.01)
    lows = [asyncio.create_task(low(index * APART_S)) for index in range(LOWS)]
    await asyncio.wait(lows, timeout=seconds)
    stop.set()
    spans = [await each for each in lows]
    await asyncio.gather(*flood)
    return spans, sorted(ends)


def measure(running, seconds=ANSWER_S, urgent_s=None):
    """Floods until every request of the lowest level is answered, or for so long; with deadlines if urgent."""
    urgent = {1: {"timeout": int(urgent_s * 1e6)} if urgent_s else {}, LEVELS: {}}
    rounds = int(models.rounds_a_second(SIZE) * RUN_S)
    tensors = [("X", "FP32", [1, 4], [1.0] * 4), ("ROUNDS", "INT64", [1, 1], [rounds])]
    requests = {level: raw_http.post("/v2/models/levels/infer", raw_http.infer_body(
        tensors, parameters={"priority": level} | more)) for level, more in urgent.items()}
    spans, ends = asyncio.run(_run(running.ports["http"], requests, seconds))
    queue = FLOODERS + LOWS + 2  # and the one that runs, and the one that is waited for
    began, ended = spans[0]
    return Flooded([end - begin for begin, end in spans], sum(began < end < ended for end in ends),
                   max(later - sooner for sooner, later in zip(ends, ends[queue:])))
