"""HTTP/1.1 over asyncio: a pool of connections that stay open, and answers whole."""

import asyncio
import collections
import json

from kinds import STATUS, Refused

ANSWER_S = 30
HOST = "127.0.0.1"
FREE_MAX = 24  # connections that wait for their next request: a burst leaves no more behind


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def good(self):
        """Itself where it is 200; else raises Refused with its documented reason."""
        if self.status == 200:
            return self
        assert self.status in STATUS.values(), (self.status, self.body[:200])
        told = self.json()
        assert STATUS.get(told["reason"]) == self.status, (self.status, self.body[:200])
        raise Refused(told["reason"])


async def read(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines[1:-2]:
        name, text = line.split(":", 1)
        headers[name.lower()] = text.strip()
    return Reply(int(lines[0].split(" ")[1]), headers, await reader.readexactly(int(headers["content-length"])))


class Pool:
    """The connection that has waited longest goes first, so that none becomes idle for long."""

    def __init__(self, port):
        self.port = port
        self.free = collections.deque()

    async def open(self):
        return await asyncio.open_connection(HOST, self.port, limit=1 << 20)

    async def ask(self, *requests):
        """The answers to requests that are sent at once; the only one where there is one."""
        reader, writer = self.free.popleft() if self.free else await self.open()
        keep = False
        try:
            writer.write(b"".join(requests))
            async with asyncio.timeout(ANSWER_S):
                replies = [await read(reader) for _ in requests]
            keep = all(reply.headers.get("connection") != "close" for reply in replies)
        finally:
            if keep and len(self.free) < FREE_MAX:
                self.free.append((reader, writer))
            else:
                writer.close()
        return replies if len(replies) > 1 else replies[0]

    def close(self):
        while self.free:
            self.free.popleft()[1].close()
