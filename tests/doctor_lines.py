"""Log lines made by hand: calls as the engine would log them, in each form that there is or was."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

Event = dict[str, Any]
Written = tuple[float, str, Event]
"""When, `>>>` or `<<<`, and what."""

START = 1_790_000_000.0


class Script:
    """Writes the events of one connection, from its opening on, in a conversation's words."""

    def __init__(self, prefix: str = "", start: float = START, *, beta: bool = False) -> None:
        self.written: list[Written] = []
        self.now = start
        self._prefix = prefix
        self._numbers = 0
        self._tail: str | None = None
        self._added = "conversation.item.created" if beta else "conversation.item.added"
        self.received("session.created", session={"id": f"sess_{self._prefix}"})
        self.sent("session.update", session={"instructions": "Answer briefly."})

    def sent(self, kind: str, **more: Any) -> None:
        self.now += 0.0004
        self.written.append((self.now, ">>>", {"type": kind, **more}))

    def received(self, kind: str, **more: Any) -> None:
        self.now += 0.0004
        self.written.append((self.now, "<<<", {"type": kind, **more}))

    def pause(self, seconds: float) -> None:
        self.now += seconds

    def called(self, tool: str = "lookup", arguments: str = '{"day": "Friday"}') -> Event:
        """The model calls a tool, in a response of its own."""
        self.pause(0.7)
        response = self._id("resp")
        item = {
            "id": self._id("item"),
            "type": "function_call",
            "call_id": self._id("call"),
            "name": tool,
            "arguments": arguments,
        }
        self.received("response.created", response={"id": response, "status": "in_progress"})
        place = {"response_id": response, "item": {**item, "arguments": ""}}
        self.received("response.output_item.added", **place)
        self._is_added({**item, "arguments": ""})
        delta = {"response_id": response, "item_id": item["id"], "delta": arguments}
        self.received("response.function_call_arguments.delta", **delta)
        self.received("response.output_item.done", response_id=response, item=item)
        self.received("conversation.item.done", item=item)
        done = {"id": response, "status": "completed", "output": [item]}
        self.received("response.done", response=done)
        return item

    def replied(self, words: str = "On Friday.") -> None:
        """The model says something."""
        self.pause(0.7)
        response = self._id("resp")
        part = [{"type": "output_text", "text": words}]
        item = {"id": self._id("item"), "type": "message", "role": "assistant", "content": part}
        self.received("response.created", response={"id": response, "status": "in_progress"})
        self._is_added({**item, "content": []})
        self.received("response.output_item.done", response_id=response, item=item)
        done = {"id": response, "status": "completed", "output": [item]}
        self.received("response.done", response=done)

    def heard(self) -> Event:
        """The caller says something."""
        item = {"id": self._id("item"), "type": "message", "role": "user", "content": []}
        self._is_added(item)
        return item

    def message(self, words: str = "hello", role: str = "user") -> Event:
        part = [{"type": "input_text", "text": words}]
        return {"id": self._id("item"), "type": "message", "role": role, "content": part}

    def output(self, call: Event, words: str = "two nights") -> Event:
        return {
            "id": self._id("item"),
            "type": "function_call_output",
            "call_id": call["call_id"],
            "output": words,
        }

    def looked_up(self, words: str = "two nights", **call: Any) -> Event:
        """The model calls a tool, and gets its output."""
        output = self.output(self.called(**call), words)
        self.update(output)
        return output

    def asks(self, *created: Event, delete: tuple[Event, ...] = ()) -> list[tuple[str, Event]]:
        """Sends an update, deletions first; returns what is to be answered."""
        asked = []
        for item in delete:
            self.sent("conversation.item.delete", item_id=item["id"], event_id=self._id("delete"))
            asked.append(("delete", item))
        for item in created:
            event_id = self._id("create")
            after = {"previous_item_id": self._tail or "root"}
            self.sent("conversation.item.create", item=item, event_id=event_id, **after)
            asked.append(("create", item))
        return asked

    def answers(self, asked: list[tuple[str, Event]], after: float = 0.06) -> None:
        """The server does it."""
        self.pause(after)
        for verb, item in asked:
            if verb == "delete":
                self.received("conversation.item.deleted", item_id=item["id"])
            else:
                self._is_added(item)

    def update(self, *created: Event, delete: tuple[Event, ...] = ()) -> None:
        self.answers(self.asks(*created, delete=delete))

    def _is_added(self, item: Event) -> None:
        self.received(self._added, item=item, previous_item_id=self._tail)
        self._tail = item["id"]

    def _id(self, kind: str) -> str:
        self._numbers += 1
        return f"{kind}_{self._prefix}{self._numbers}"


def losing(prefix: str = "", **how: Any) -> Script:
    """A call in which a text turn deletes a tool's output, and the model calls the tool again."""
    script = Script(prefix, **how)
    script.update(script.message("good day"))
    call = script.called()
    output = script.output(call)
    script.answers(script.asks(output))
    script.answers(script.asks(script.message(), delete=(output,)))
    script.sent("response.create", response={})
    script.called()
    script.replied()
    return script


def keeping(prefix: str = "", **how: Any) -> Script:
    """The same call, in which nothing is lost."""
    script = Script(prefix, **how)
    script.update(script.message("good day"))
    script.looked_up()
    script.update(script.message())
    script.sent("response.create", response={})
    script.replied()
    return script


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, tz=timezone.utc).isoformat()


def production(written: Written, **fields: Any) -> str:
    """From 1.7 on, `start`."""
    at, arrow, event = written
    record = {"message": arrow, "level": "DEBUG", "name": "livekit.agents", "lk.pii.event": event}
    return json.dumps({**record, "pid": 7, **fields, "timestamp": _iso(at)}, ensure_ascii=False)


def old_production(written: Written, **fields: Any) -> str:
    """Before 1.7, `start`: the event stands in the message, as Python writes it."""
    at, arrow, event = written
    record = {"message": f"{arrow} {event}", "level": "DEBUG", "name": "livekit.plugins.openai"}
    return json.dumps({**record, "pid": 7, **fields, "timestamp": _iso(at)}, ensure_ascii=False)


def dev(written: Written, **fields: Any) -> str:
    """From 1.7 on, `dev`: in colour, the event in what follows the message."""
    at, arrow, event = written
    extra = json.dumps({"lk.pii.event": event, "pid": 7, **fields}, ensure_ascii=False)
    head = f"{_local(at)} - \x1b[36mDEBUG\x1b[0m livekit.agents - {arrow}"
    return f"{head} \x1b[90m{extra}\x1b[0m"


def old_dev(written: Written, **fields: Any) -> str:
    """Before 1.7, `dev`."""
    at, arrow, event = written
    extra = json.dumps({"pid": 7, **fields}, ensure_ascii=False)
    head = f"{_local(at)} - \x1b[36mDEBUG\x1b[0m livekit.plugins.openai - {arrow} {event}"
    return f"{head} \x1b[90m{extra}\x1b[0m"


def console(written: Written, **fields: Any) -> str:
    """`console`: the line begins anew, and the time is in whole seconds."""
    at, arrow, event = written
    extra = json.dumps({"lk.pii.event": event, **fields}, ensure_ascii=False)
    time = datetime.fromtimestamp(at, tz=timezone.utc).strftime("%H:%M:%S")
    return f"\r{time} \x1b[36mDEBUG\x1b[0m livekit.agents {arrow} \x1b[90m{extra}\x1b[0m"


def _local(at: float) -> str:
    time = datetime.fromtimestamp(at, tz=timezone.utc)
    return f"{time:%Y-%m-%d %H:%M:%S},{time.microsecond // 1000:03d}"


FORMS: dict[str, Callable[..., str]] = {
    "production": production,
    "production before 1.7": old_production,
    "dev": dev,
    "dev before 1.7": old_dev,
    "console": console,
}


def _docker_json(line: str) -> str:
    wrapped = {"log": f"{line}\n", "stream": "stdout", "time": "2026-09-21T14:13:20.000000001Z"}
    return json.dumps(wrapped)


WRAPPINGS: dict[str, Callable[[str], str]] = {
    "docker logs -t": lambda line: f"2026-09-21T14:13:20.123456789Z {line}",
    "docker compose": lambda line: f"agent-1  | {line}",
    "kubectl --prefix": lambda line: f"[pod/agent-7{{x}}/agent] {line}",
    "syslog": lambda line: f"<14>Sep 21 14:13:20 host agent[7]: {line}",
    "docker's json-file": _docker_json,
    "a drain's envelope": lambda line: json.dumps({"dt": "2026", "message": line, "app": "x"}),
    "a drain that escapes": lambda line: (
        json.dumps({"message": line.replace("\x1b", "")}, ensure_ascii=True)
        .replace(">", "\\u003e")
        .replace("<", "\\u003c")
    ),
    "fields of a drain": lambda line: (
        json.dumps({"jsonPayload": json.loads(line), "severity": "DEBUG"})
        if line.startswith("{")
        else f"x {line}"
    ),
}
