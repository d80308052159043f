"""Runs with the real engine, whose log lines are kept, and the truth about what they lost.

The lines are made by the formatters of the livekit-agents that is installed. Their times are not
the machine's: an answer comes 60 ms after what was sent before it, and `LogClock.pause` lets as
much time pass as a person would need.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ctxlock.doctor.calls import Calls
from ctxlock.doctor.findings import CallReport, Loss
from ctxlock.doctor.lines import Counts, read
from ctxlock.doctor.sources import Source
from ctxlock.races import backend
from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.loopback.far_end import FarEnd
from ctxlock.races.loopback.model import LoopbackModel, serving
from ctxlock.races.names import name_items
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.server import ServerConversation
from ctxlock.races.trace import Recorder, recording
from ctxlock.races.verdict import LostUpdate
from livekit.agents import Agent, llm
from livekit.agents.cli import log as cli_log

ROUND_TRIP = 0.06
_TICK = 0.0004
_START = 1_790_000_000.0


class LogClock:
    """The time of log lines."""

    def __init__(self, round_trip: float = ROUND_TRIP) -> None:
        self.now = _START
        self._round_trip = round_trip
        self._sent = False
        self._skew = 0.0

    def pause(self, seconds: float) -> None:
        self.now += seconds

    def stamp(self, record: logging.LogRecord) -> None:
        skew = asyncio.get_running_loop().time() - time.monotonic()  # the regressions' own clock
        if skew > self._skew + 1:
            self.now += skew - self._skew
        self._skew = skew
        text = record.getMessage()
        if text.startswith("<<<") and self._sent:
            self.now += self._round_trip
        if text.startswith((">>>", "<<<")):
            self._sent = text.startswith(">>>")
        self.now += _TICK
        record.created = self.now
        record.msecs = (self.now % 1) * 1000


@dataclass
class Log:
    """What was logged in one run, at whose far ends it ended, and the items that those had."""

    clock: LogClock = field(default_factory=LogClock)
    lines: list[str] = field(default_factory=list)
    ends: list[FarEnd] = field(default_factory=list)
    known: dict[str, Any] = field(default_factory=dict)
    agents: list[list[Any]] = field(default_factory=list)


class _Handler(logging.Handler):
    def __init__(self, log: Log, formatter: logging.Formatter, fields: dict[str, str]) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(formatter)
        self._log = log
        self._fields = fields

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith("livekit"):
            return
        self._log.clock.stamp(record)
        record.__dict__.update(self._fields)
        self._log.lines.append(self.format(record))


def formatter(*, dev: bool = False, console: bool = False) -> logging.Formatter:
    """The formatter that the installed command line would use."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    wanted = {"devmode": dev, "console": console, "compact": False}
    known = inspect.signature(cli_log.setup_logging).parameters
    cli_log.setup_logging("INFO", **{k: v for k, v in wanted.items() if k in known})
    (added,) = [handler for handler in root.handlers if handler not in before]
    root.removeHandler(added)
    root.setLevel(level)
    made = added.formatter
    assert made is not None
    return made


@contextmanager
def logged(log: Log, how: logging.Formatter | None = None, **fields: str) -> Iterator[None]:
    """Has the engine log its events in the block, as LK_OPENAI_DEBUG=1 and DEBUG do."""
    handler = _Handler(log, how or formatter(), fields)
    modules = _modules_with_the_setting()
    before = [(module, module.lk_oai_debug) for module in modules]
    loggers = [
        logging.getLogger(name) for name in ("livekit", "livekit.agents", *_loggers(modules))
    ]
    levels = [(logger, logger.level) for logger in loggers]
    for module in modules:
        module.lk_oai_debug = 1
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        for logger, level in levels:
            logger.setLevel(level)
        for module, value in before:
            module.lk_oai_debug = value


def _modules_with_the_setting() -> list[Any]:
    """Where the engine has the setting, which it reads but once, when it is imported."""
    names = {kind.__module__ for kind in LoopbackModel.__mro__}
    modules = [sys.modules[name] for name in sorted(names)]
    return [module for module in modules if hasattr(module, "lk_oai_debug")]


def _loggers(modules: list[Any]) -> list[str]:
    return sorted({module.logger.name for module in modules if hasattr(module, "logger")})


@contextmanager
def far_ends_kept(log: Log) -> Iterator[None]:
    """Runs the races in the block through the engine, and keeps the far ends."""
    session = LoopbackModel.session

    def opening(self: LoopbackModel, **how: Any) -> Any:
        engine = session(self, **how)
        log.ends.append(self.sessions[-1])
        return engine

    recorder = Recorder()
    opens = patch.object(LoopbackModel, "session", opening)
    with opens, backend.over(serving), _items_noted(log), recording(recorder):
        try:
            yield
        finally:
            log.agents = [e["agent"] for e in recorder._events if e.get("agent") is not None]


@contextmanager
def _items_noted(log: Log) -> Iterator[None]:
    append, create = ServerConversation.append, ServerConversation.create

    def appending(self: Any, item: Any) -> str | None:
        log.known[item.id] = item
        return append(self, item)

    def creating(self: Any, previous_id: str | None, item: Any) -> None:
        log.known[item.id] = item
        create(self, previous_id, item)

    first = patch.object(ServerConversation, "append", appending)
    with first, patch.object(ServerConversation, "create", creating):
        yield


def lost(log: Log, verdict: str) -> set[str]:
    """What the servers lost and a log can show: items that an update deleted, or brought back.

    Args:
        log: The run, which the regressions' own verdict calls lost.
        verdict: Its first line, which names what is wrong.
    """
    names = dict(zip(log.known, name_items(log.known.values()), strict=True))
    wrong = {item.id for items in log.agents[-1:] for item in items}  # what nobody took from it
    wrong |= {i for i, name in names.items() if re.search(_WRONG.format(re.escape(name)), verdict)}
    if verdict.startswith(_NAMELESS):
        wrong |= {item.id for item in log.known.values() if not any(item.content)}
    found: set[str] = set()
    for end in log.ends:
        deleted: set[str] = set()
        for push in end.pushes:
            creates = {item.id for item in push.creates}
            back = deleted & creates - set(push.deletes)
            deleted = deleted - creates | set(push.deletes) - creates
            found |= back
        found |= deleted
    return found & wrong


_WRONG = r"(?:^|; |only the (?:agent|model) has ){}(?: is (?:lost|back)|[;.]|$)"
_NAMELESS = "What arrived between two activities"
"""A verdict that names no item, and is about what the caller says."""


@dataclass
class Run:
    """A run, and what its lines tell.

    Attributes:
        truth: The ids of what was lost and a log can show; empty if nothing was.
        verdict: What the regressions' own verdict says; nothing if all is well.
    """

    truth: set[str]
    reports: list[CallReport]
    counts: Counts
    verdict: str = ""

    @property
    def losses(self) -> list[Loss]:
        return [loss for report in self.reports for loss in report.losses]

    def ids(self, grade: str) -> set[str]:
        return {loss.item.id for loss in self.losses if loss.grade == grade}


def told(path: Path, lines: list[str], **how: Any) -> tuple[list[CallReport], Counts, Calls]:
    """What the doctor says of lines."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    kept: list[CallReport] = []
    counts = Counts()
    calls = Calls(kept.append, **how)
    for line in read(Source(str(path)), 0, counts):
        calls.feed(line)
    calls.end()
    return kept, counts, calls


async def examined(
    run: Callable[[Log], Awaitable[None]],
    path: Path,
    how: logging.Formatter | None = None,
    **fields: str,
) -> Run:
    """Runs something through the engine and judges its log."""
    log = Log()
    verdict = ""
    with logged(log, how, **fields), far_ends_kept(log):
        try:
            await run(log)
        except LostUpdate as e:
            verdict = str(e).partition("\n")[0]
    reports, counts, _ = told(path, log.lines)
    return Run(lost(log, verdict) if verdict else set(), reports, counts, verdict)


# -- what a person or an application does, each a pause after the other


Calm = Callable[[Harness, Callable[[], Awaitable[None]]], Awaitable[None]]


def _replies(talk: Harness) -> None:
    def reply(response: Any) -> None:
        response.message("Here you are.")
        response.done()

    talk.realtime.on_reply = reply


def _without_replies(talk: Harness) -> None:
    talk.realtime.on_reply = lambda response: response.done()


async def _answered_call(talk: Harness, pause: Callable[[], Awaitable[None]]) -> GatedTool:
    """A tool is called, returns, and the model replies with its result."""
    lookup = GatedTool("lookup")
    talk.activity.agent._tools = [lookup.tool]
    await talk.activity.update_tools([lookup.tool])
    await talk.call(lookup)
    lookup.finish()
    await pause()
    return lookup


OUTPUT = "function_call_output of lookup"


async def replacement_that_adds(talk: Harness, pause: Any) -> None:
    await _answered_call(talk, pause)
    await talk.replace(note("the caller is a member"))
    await pause()


async def replacement_of_a_result(talk: Harness, pause: Any) -> None:
    await _answered_call(talk, pause)
    await talk.replace(note("the booking is confirmed"), without=[OUTPUT])
    await pause()


async def replacement_of_an_unused_result(talk: Harness, pause: Any) -> None:
    _without_replies(talk)
    await replacement_of_a_result(talk, pause)


async def removal_of_an_unused_result(talk: Harness, pause: Any) -> None:
    _without_replies(talk)
    await removal_of_a_result(talk, pause)


async def replacement_of_what_was_said(talk: Harness, pause: Any) -> None:
    talk.realtime.transcribe(talk.realtime.hear(), "my number is")
    await pause()
    await talk.replace(note("a number"), without=['user "my number is"'])
    await pause()


async def removal_of_a_result(talk: Harness, pause: Any) -> None:
    await _answered_call(talk, pause)
    await talk.replace(without=[OUTPUT])
    await pause()


async def removal_of_call_and_result(talk: Harness, pause: Any) -> None:
    await _answered_call(talk, pause)
    await talk.replace(without=["function_call lookup", OUTPUT])
    await pause()


async def removal_of_a_note(talk: Harness, pause: Any) -> None:
    await talk.replace(note("A"))
    await pause()
    await talk.replace(note("B"), without=['user "A"'])
    await pause()


async def trim(talk: Harness, pause: Any) -> None:
    for text in ("one", "two", "three"):
        talk.text_turn(text)
        await pause()
    items = talk.local.items[-2:]
    await talk.start(_update(talk, llm.ChatContext(items)))
    await pause()


async def trim_and_add(talk: Harness, pause: Any) -> None:
    for text in ("one", "two", "three"):
        talk.text_turn(text)
        await pause()
    items = [*talk.local.items[-2:], note("go on")]
    await talk.start(_update(talk, llm.ChatContext(items)))
    await pause()


async def summary(talk: Harness, pause: Any) -> None:
    await _answered_call(talk, pause)
    for text in ("one", "two"):
        talk.text_turn(text)
        await pause()
    said = llm.ChatMessage(role="assistant", content=["So far: a booking, and two numbers."])
    await talk.start(_update(talk, llm.ChatContext([said])))
    await pause()


async def handoff(talk: Harness, pause: Any) -> None:
    await _answered_call(talk, pause)
    talk.text_turn("let me talk to somebody else")
    await pause()
    talk.hand_off(agent_with())
    await pause()


async def handoff_with_a_message(talk: Harness, pause: Any) -> None:
    await _answered_call(talk, pause)
    history = llm.ChatContext([note("They have a booking.")])
    talk.hand_off(Agent(instructions="Go on.", chat_ctx=history))
    await pause()


async def handoff_while_the_caller_speaks(talk: Harness, pause: Any) -> None:
    await _answered_call(talk, pause)
    talk.realtime.hear()
    await pause()
    talk.hand_off(agent_with())
    await pause()


async def removal_of_what_was_not_understood(talk: Harness, pause: Any) -> None:
    talk.realtime.hear()
    await pause()
    await talk.replace(without=['user ""'])
    await pause()


async def fresh_start_while_the_model_writes(talk: Harness, pause: Any) -> None:
    await talk.replace(note("before"))
    await pause()
    response = talk.realtime.respond()
    message = response.message()
    await pause()
    await talk.start(_update(talk, llm.ChatContext([note("go on")])))
    message.write("Hello.")
    response.done()
    await pause()


async def cleanup(talk: Harness, pause: Any) -> None:
    lookup = GatedTool("lookup")
    await talk.activity.update_tools([lookup.tool])
    await talk.call_and_interrupt(lookup)
    lookup.finish()
    await pause()
    await talk.unheard_reply()
    await pause()
    talk.interrupt()
    await pause()


async def turns(talk: Harness, pause: Any) -> None:
    for text in ("one", "two"):
        talk.text_turn(text)
        await pause()
        talk.realtime.transcribe(talk.realtime.hear(), "and another")
        await pause()
        await _answered_call(talk, pause)


def _update(talk: Harness, chat_ctx: llm.ChatContext) -> Any:
    from ctxlock.races.harness import update_chat_ctx

    return update_chat_ctx(talk.activity, chat_ctx)


CALM: dict[str, Calm] = {
    "a replacement that adds": replacement_that_adds,
    "a replacement of a result by a note": replacement_of_a_result,
    "a replacement of a result that no reply has used": replacement_of_an_unused_result,
    "removal of a result that no reply has used": removal_of_an_unused_result,
    "a replacement of what the caller said": replacement_of_what_was_said,
    "removal of a result": removal_of_a_result,
    "removal of a call and its result": removal_of_call_and_result,
    "a replacement of a note by a note": removal_of_a_note,
    "a trim": trim,
    "a trim that adds": trim_and_add,
    "a summary": summary,
    "a handoff": handoff,
    "a handoff with a message": handoff_with_a_message,
    "a handoff while the caller speaks": handoff_while_the_caller_speaks,
    "removal of what was not understood": removal_of_what_was_not_understood,
    "a fresh start while the model writes": fresh_start_while_the_model_writes,
    "never-played cleanup": cleanup,
    "turns and tools": turns,
}
"""What loses nothing, since whoever deletes means to."""


def calmly(name: str, seconds: float) -> Callable[[Log], Awaitable[None]]:
    """One of `CALM`, with that many seconds between one thing and the next."""

    async def run(log: Log) -> None:
        async def pause() -> None:
            await idle()
            log.clock.pause(seconds)

        async with running(agent_with(), looking=False) as talk:
            _replies(talk)
            await CALM[name](talk, pause)
            await asyncio.sleep(0)

    return run
