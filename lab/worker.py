"""Runs steps over a provider in this environment and prints what was seen, as JSON."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from .clock import LabLoop, install
from .far_end import FarEnd, Setting, Unsupported
from .inside import arguments, enter, report
from .trace import Recorder, Trace

if TYPE_CHECKING:
    from .world import World

__all__ = ["main", "run_step"]

VIRTUAL_LIMIT = 4000.0
"""Virtual seconds after which a step is stuck."""

REAL_LIMIT = 120
"""Real seconds after which a step is stuck: it computes for ever, or waits for nothing."""


class Stuck(BaseException):
    """A step does not end; no handler of anybody's is to swallow it."""


def run_step(
    provider: type[FarEnd], setting: Setting, run: Callable[[World], Awaitable[None]]
) -> Trace:
    """Runs one step in a loop of its own, with a fresh far end and session."""
    from .facts import record_of
    from .watch import logging_to
    from .world import World

    loop = LabLoop()
    asyncio.set_event_loop(loop)
    recorder = Recorder(loop.time)

    async def whole() -> None:
        async with AsyncExitStack() as stack:
            far_end = await stack.enter_async_context(provider(recorder, setting))
            world = World(recorder, far_end)
            try:
                await asyncio.wait_for(run(world), VIRTUAL_LIMIT)
            finally:
                await world.close()
                del world
                gc.collect()  # tells of exceptions that nobody asked for
                await asyncio.sleep(0)
                recorder.stop()

    def out_of_time(*_: Any) -> None:
        signal.alarm(5)  # again, should somebody swallow it
        raise Stuck

    before = signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(REAL_LIMIT)
    outcome, why = "done", ""
    gc.collect()
    gc.disable()  # so that the collector tells in the end, and not in whichever step it runs
    try:
        with logging_to(lambda record: recorder.note("log", record_of(record))):
            loop.run_until_complete(whole())
    except Unsupported as e:
        outcome, why = "unsupported", str(e)
    except (Stuck, asyncio.TimeoutError):
        outcome, why = "stuck", "".join(traceback.format_exc(limit=-3))
    except Exception as e:
        outcome, why = "failed", f"{type(e).__name__}: {e}"
        traceback.print_exc(file=sys.stderr)
    finally:
        signal.alarm(0)
        recorder.stop()
        gc.enable()
        _end(loop)
        signal.signal(signal.SIGALRM, before)
    return recorder.trace(outcome, why)


def _end(loop: LabLoop) -> None:
    try:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=5))
        loop.run_until_complete(loop.shutdown_asyncgens())
    except (Exception, Stuck):
        traceback.print_exc(file=sys.stderr)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def main(options: list[str] | None = None) -> int:
    """The command line; returns its exit code."""
    parser = arguments("lab.worker", __doc__)
    parser.add_argument("--provider", action="append", help="one provider; all by default")
    parser.add_argument("--step", action="append", help="one step; all by default")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before acknowledgements")
    parser.add_argument("--text", action="store_true", help="for people, not for programs")
    given = parser.parse_args(options)
    install()
    enter(given)
    from . import providers
    from .steps import STEPS

    seen: dict[str, Any] = {}
    for name in given.provider or providers.names():
        provider = providers.load(name)
        seen[name] = {}
        for step in given.step or STEPS:
            trace = run_step(provider, STEPS[step].setting(given.delay), STEPS[step].run)
            seen[name][step] = vars(trace)
            print(f"{name}: {step}: {trace.outcome}", file=sys.stderr, flush=True)
            if given.text:
                _print(trace)
    if given.output is not None or not given.text:
        report(given, seen)
    return 0


def _print(trace: Trace) -> None:
    print(trace.outcome, trace.why)
    for channel, lines in trace.channels.items():
        print(f"== {channel}")
        for line in lines:
            print("  ", line)


if __name__ == "__main__":
    sys.exit(main())
