"""Open-loop load: requests leave when their time comes, whatever became of those before them."""

import asyncio
import dataclasses
import threading
import time


@dataclasses.dataclass
class Outcome:
    intended: float  # seconds of time.monotonic()
    ended: float
    status: int  # 0: no answer
    error: str = ""

    @property
    def latency_s(self):
        return self.ended - self.intended


class Load:
    """`rate` requests a second over `connections` keep-alive connections, on a thread of its own.

    A connection whose answer says `Connection: close` is opened anew; a request whose connection is still
    busy at its time takes a further one. Nothing is repeated: what fails counts, connecting included.
    """

    def __init__(self, port, request, rate=600, connections=24):
        self.port, self.request = port, request
        self.rate, self.connections = rate, connections
        self.outcomes = []
        self.opened = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Sends no more, waits for the answers."""
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive(), "the load generator hangs"

    def failed(self):
        return [outcome for outcome in self.outcomes if outcome.status != 200]

    def count_since(self, moment):
        return sum(outcome.intended >= moment for outcome in self.outcomes)

    async def _run(self):
        self.free = []
        await asyncio.gather(*(self._open_spare() for _ in range(self.connections)))
        start, number, pending = time.monotonic(), 0, set()
        while not self._stop.is_set():
            due = start + number / self.rate
            wait = due - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            task = asyncio.create_task(self._one(due))
            pending.add(task)
            task.add_done_callback(pending.discard)
            number += 1
        if pending:
            await asyncio.wait(pending, timeout=30)
        for _, writer in self.free:
            writer.close()

    async def _open(self):
        self.opened += 1
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def _open_spare(self):
        self.free.append(await self._open())

    async def _one(self, due):
        status, error = 0, ""
        try:
            # The oldest free connection: all of them stay in use.
            reader, writer = self.free.pop(0) if self.free else await self._open()
            writer.write(self.request)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
            status = int(head[9:12])
            lower = head.lower()
            at = lower.index(b"content-length:") + 15
            await reader.readexactly(int(lower[at:lower.index(b"\r\n", at)]))
            if b"connection: close" in lower:
                writer.close()
            else:
                self.free.append((reader, writer))
        except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError) as problem:
            status, error = 0, repr(problem)
        self.outcomes.append(Outcome(due, time.monotonic(), status, error))


def percentile(values, percent):
    """The smallest value that at least `percent` per cent of all do not exceed."""
    ordered = sorted(values)
    return ordered[-(-len(ordered) * percent // 100) - 1]
