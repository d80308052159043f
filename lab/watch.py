"""Takes down what a session does: its events, its calls to the provider, what is logged."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, get_args

from .facts import fact_of
from .trace import Recorder

__all__ = ["logging_to", "watch_model", "watch_session"]

_CALLS = (
    *(
        "update_chat_ctx",
        "update_instructions",
        "update_tools",
        "update_options",
        "_update_session",
    ),
    *("generate_reply", "interrupt", "truncate", "say", "commit_audio", "clear_audio", "aclose"),
    "start_user_activity",
)

_METRICS = frozenset({"metrics_collected", "session_usage_updated", "debug_message"})
"""Events full of durations, of which only the fact is taken down, in a channel of their own: when
one comes depends on when a connection is made, and so on the loop's rounds.
"""


def watch_model(model: Any, recorder: Recorder) -> None:
    """Takes down each call that reaches a session of the model's, and its errors."""
    original = model.session
    count = 0

    @functools.wraps(original)
    def session(*args: Any, **named: Any) -> Any:
        nonlocal count
        made = original(*args, **named)
        count += 1
        recorder.note("calls", {"session": count, "with": fact_of(named)})
        for name in _CALLS:
            if callable(call := getattr(made, name, None)):
                setattr(made, name, _watched(call, f"{count}.{name}", recorder))
        return made

    model.session = session


def _given(value: Any) -> Any:
    """An argument, and of a context which object it is."""
    if hasattr(value, "items") and isinstance(value.items, list):
        return {"object": hex(id(value)), "items": fact_of(value)}
    return fact_of(value)


def _watched(call: Callable[..., Any], name: str, recorder: Recorder) -> Callable[..., Any]:
    kept: list[Any] = []

    def note(fact: dict[str, Any]) -> None:
        task = asyncio.current_task()
        work = None if task is None else task.get_coro()
        by = getattr(work, "__qualname__", "a callback")
        recorder.note("calls", fact | {"by": by, "at step": getattr(work, "steps", 0)})

    def begin(args: Any, named: Any) -> None:
        kept.extend([*args, *named.values()])  # else another object may get the same address
        given = [_given(arg) for arg in args]
        options = {key: _given(value) for key, value in named.items()}
        note({"call": name, "args": given, "named": options})

    if inspect.iscoroutinefunction(call):

        @functools.wraps(call)
        async def awaited(*args: Any, **named: Any) -> Any:
            begin(args, named)
            try:
                result = await call(*args, **named)
            except BaseException as e:
                note({"ended": name, "with": fact_of(e)})
                raise
            note({"ended": name})
            return result

        return awaited

    @functools.wraps(call)
    def called(*args: Any, **named: Any) -> Any:
        begin(args, named)
        return call(*args, **named)

    return called


def watch_session(session: Any, recorder: Recorder) -> list[Any]:
    """Takes down a session's events in order.

    Returns:
        The handles of its speeches so far, in order; the list grows.
    """
    from livekit.agents.voice import events

    speeches: list[Any] = []
    session.on("speech_created", lambda event: speeches.append(event.speech_handle))
    for name in get_args(events.EventTypes):
        if name != "error":
            session.on(name, functools.partial(_event, recorder, name))
    session.on("error", functools.partial(_error, recorder))
    return speeches


def _event(recorder: Recorder, name: str, event: Any) -> None:
    if name in _METRICS:
        recorder.note("metrics", name)
    else:
        recorder.note("events", {"event": name} | fact_of(event))


def _error(recorder: Recorder, event: Any) -> None:
    error = getattr(event, "error", event)
    recorder.note(
        "errors",
        {
            "error": type(error).__name__,
            "cause": fact_of(getattr(error, "error", None)),
            "recoverable": getattr(error, "recoverable", None),
            "source": type(getattr(event, "source", None)).__name__,
        },
    )


@contextmanager
def logging_to(note: Callable[[logging.LogRecord], None]) -> Iterator[None]:
    """Takes down what is logged in its block, from WARNING up."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            note(record)

    handler = Handler(logging.WARNING)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
