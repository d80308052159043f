"""Measures one livekit-agents, the one that can be imported, and prints what it measured as JSON.

It runs in the environment of that release, and imports only what the races do. Times are of the
processor, not of the wall: nothing here waits for anything else, and other processes count less.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any

__all__ = ["acknowledgements_behind_one", "main"]

BATCHES, PUSHES = 20, 50
CYCLES = 100
LOCKINGS = 20_000


async def best(batches: int, count: int, step: Callable[[], Awaitable[object]]) -> float:
    """Microseconds a step takes in the quickest of some batches: others were disturbed."""
    times = []
    for _ in range(batches):
        before = time.process_time()
        for _ in range(count):
            await step()
        times.append((time.process_time() - before) / count)
    return min(times) * 1e6


async def uncontended_lock() -> float:
    """Microseconds to take a free `asyncio.Lock` and let go of it: what the patch adds at least."""
    lock = asyncio.Lock()

    async def step() -> None:
        async with lock:
            pass

    return await best(5, LOCKINGS, step)


async def uncontended_push() -> float:
    """Microseconds for a replacement of the context that nothing overlaps, acknowledged at once."""
    from ctxlock.races.harness import local_context, running, update_chat_ctx
    from ctxlock.races.scenario import agent_with, note

    async with running(agent_with(), looking=False) as talk:
        activity = talk.activity
        short = local_context(activity)
        long = short.copy()
        long.items.append(note("A"))
        contexts = [long, short]  # each push has one item to create or to delete

        async def step() -> None:
            contexts.reverse()
            await update_chat_ctx(activity, contexts[0])

        await best(1, PUSHES, step)
        before = len(talk.realtime.pushes)
        fastest = await best(BATCHES, PUSHES, step)
        assert len(talk.realtime.pushes) - before == BATCHES * PUSHES
        return fastest


async def turn_behind_a_push() -> float:
    """Microseconds from the acknowledgement of a pending push to the end of a turn behind it."""
    from ctxlock.races.harness import idle, running
    from ctxlock.races.scenario import agent_with, note
    from ctxlock.races.verdict import name_items

    times = []
    async with running(agent_with(), looking=False) as talk:
        for _ in range(CYCLES):
            push = talk.realtime.hold()
            replaced = talk.replace(note("A"))
            await push.entered.wait()
            turn = talk.text_turn("hello")
            await idle()
            before = time.process_time()
            push.release()
            await turn
            times.append(time.process_time() - before)
            await replaced
            # back to an empty context, so that no cycle is longer than the last
            await talk.replace(without=name_items(talk.local.items))
    return statistics.median(times) * 1e6


async def sequential_turns(count: int) -> float:
    """Seconds for so many text turns, one after the other, in one conversation."""
    from ctxlock.races.harness import running
    from ctxlock.races.scenario import agent_with

    async with running(agent_with(), looking=False) as talk:
        before = time.process_time()
        for _ in range(count):
            await talk.text_turn("hello")
        return time.process_time() - before


async def acknowledgements_behind_one(*, serial: bool = True) -> int:
    """How many acknowledgements a text turn waits for that comes while one push is pending.

    Args:
        serial: Whether the provider's own client takes updates in turn, as the OpenAI engine does.
    """
    from ctxlock.races.fake_realtime import FakeRealtimeSession
    from ctxlock.races.harness import idle, running
    from ctxlock.races.scenario import agent_with, note

    async with running(agent_with(), looking=False) as talk:
        if not serial:
            assert isinstance(talk.realtime, FakeRealtimeSession)
            talk.realtime.engine._lock = contextlib.nullcontext()  # type: ignore[assignment]
        held = [talk.realtime.hold() for _ in range(5)]
        talk.replace(note("A"))
        await idle()
        turn = talk.text_turn("hello")
        await idle()
        # the later ones first, so that a turn which needs only its own does not wait for another
        waited = 0
        while not turn.done():
            pending = [push for push in held if push.entered.is_set() and not push.settled]
            pending[-1].release()
            waited += 1
            await idle()
        return waited


def imported() -> float:
    """Seconds to import `livekit.agents`; to be called before anything has imported it."""
    before = time.process_time()
    import livekit.agents

    assert livekit.agents
    return time.process_time() - before


async def _measure(turns: int) -> dict[str, Any]:
    return {
        "lock": await uncontended_lock(),
        "push": await uncontended_push(),
        "turn behind": await turn_behind_a_push(),
        "turns": await sequential_turns(turns),
        "acknowledgements": await acknowledgements_behind_one(),
        "acknowledgements, concurrent": await acknowledgements_behind_one(serial=False),
    }


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=1000, help="0: the time of the import alone")
    turns = parser.parse_args().turns
    measured: dict[str, Any] = {"import": imported()}
    logging.disable(logging.CRITICAL)
    if turns:
        measured |= asyncio.run(_measure(turns))
    json.dump({"version": version("livekit-agents")} | measured, sys.stdout)


if __name__ == "__main__":
    main()
