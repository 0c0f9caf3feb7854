"""What an operator does meanwhile: models loaded, unloaded, reloaded, scaled, and loads that fail."""

import asyncio
import itertools
import json

import served
from harness import models, raw_http

PAUSE_S = 0.15


async def command(soak, model, what, expected=200):
    reply = await soak.http.ask(raw_http.post(f"/v2/repository/models/{model}/{what}", b"{}"))
    assert reply.status == expected, (model, what, reply.status, reply.body[:300])


async def come(soak, turn):
    """The next weights; the answers of the last ones are right as long as they may still be served."""
    made = served.weights(turn)
    soak.coming = [*soak.coming[-1:], float(served.numpy.frombuffer(
        made.graph.initializer[0].raw_data, "<f4").sum(dtype="f8") / 256)]
    models.write(soak.folder, "coming", made)
    await command(soak, "coming", "load")


async def go(soak, _):
    await command(soak, "coming", "unload")


async def reload(soak, turn):
    served.write_reloaded(soak.folder, turn)
    await command(soak, "reloaded", "load")


async def scale(soak, turn):
    (soak.folder / "scaled" / "config.pbtxt").write_text(served.scaled_config(1 + turn % 3))
    await command(soak, "scaled", "load")


async def fail(soak, turn):
    await command(soak, ("broken", "fails")[turn % 2], "load", 400)


async def look(soak, _):
    reply = await soak.http.ask(raw_http.post("/v2/repository/index", b""))
    assert {row["name"] for row in json.loads(reply.good().body)} >= set(served.STARTUP)


STEPS = (come, reload, look, go, scale, fail)


async def make_changes(soak):
    """One after the other, until the soak ends; each counts as a request of the kind `changes`."""
    for turn in itertools.count():
        for step in STEPS:
            if soak.ended.is_set():
                return
            await soak.one(soak.changes, lambda _, step=step: step(soak, turn))
            await asyncio.sleep(PAUSE_S)
