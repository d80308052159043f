"""The scripted model behind one connection: obeys the rules, and tells what happens to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..races.loopback.items import FunctionCall, FunctionCallOutput, Item
from ..races.loopback.provider import Provider
from ..races.loopback.push import WirePush
from ..races.loopback.response import WireResponse
from ..races.loopback.server import Connection
from ..races.loopback.updates import error_event
from ..races.loopback.wire import CreateRequest, Event
from .acknowledgements import HOLD, Acknowledgements, Patience
from .answers import Call, Script
from .report import ConnectionReport, Report
from .rules import Rule

__all__ = ["Lobby", "ScriptedModel", "left_open"]

_PAUSE = 0.01  # s, three times over; what a client sends at once need not arrive at once
_LETTERS_A_SECOND = 15
_BYTES_A_SECOND = 2 * 24_000


class ScriptedModel(Provider):
    """Answers by the rules, and acknowledges with the patience asked for.

    Args:
        rules: What it says and calls.
        patience: When it acknowledges.
        report: Where it tells what happens.
    """

    def __init__(self, rules: Sequence[Rule], patience: Patience, report: ConnectionReport) -> None:
        super().__init__(spoken=True, take=self.take, pause=_PAUSE)
        self.on_reply = self._reply
        self._script = Script(rules)
        self._report = report
        self._session: Event = {}
        self._tools: dict[str, Event] = {}
        self._acknowledgements = Acknowledgements(patience, self._holds, self._releases)

    def release(self, reason: str) -> None:
        """Sends the acknowledgements that are kept back."""
        self._acknowledgements.release(reason)

    def attach(self, connection: Connection) -> None:
        """Begins a conversation."""
        super().attach(connection)
        self._report.tell("connected", "an agent has connected")

    def detach(self, *, closed: bool) -> None:
        """Ends it."""
        super().detach(closed=closed)
        self._acknowledgements.forget()
        self._report.tell("disconnected", "the agent has disconnected")

    def read(self, text: str) -> None:
        """Handles an event of the client's; what is no event, or lacks something, is refused."""
        try:
            super().read(text)
        except (AttributeError, KeyError, TypeError, ValueError) as e:
            problem = f"not understood: {type(e).__name__}: {e}"
            self.send(error_event(problem, "invalid_request", None))
            self._report.tell("refused", f"refused an event: {problem}", style="yellow")

    def take(self, push: WirePush) -> None:
        """Does what an update asks for, tells of it, and has it acknowledged when it is due."""
        before = list(self.server.items)
        push.apply()
        self._tell(push, before)
        self._acknowledgements.take(push)

    def _tell(self, push: WirePush, before: Sequence[Item]) -> None:
        after = self.server.items
        known = {item.id: item for item in before}
        open_calls = left_open(after)
        for operation in push.owed:  # what was done; the client is told of the rest as an error
            if isinstance(operation, CreateRequest):
                self._report.created(after, operation.item)
            else:
                item = known[operation.item_id]
                lost = isinstance(item, FunctionCallOutput) and item.call_id in open_calls
                self._report.deleted(before, item, lost=lost)
        for operation in push.operations:
            if operation not in push.owed:
                self._report.tell(
                    "refused", f"refused: {operation.item_id} does not fit the conversation"
                )
        self._report.conversation(after)

    def _holds(self) -> None:
        text = "holds the acknowledgement of a tool output"
        self._report.tell("holding", f"{text}; Enter sends it, at most {HOLD:g} s", seconds=HOLD)

    def _releases(self, reason: str) -> None:
        self._report.tell("released", f"acknowledges it, because {reason}", reason=reason)

    # -- what is done when asked

    def _on_session_update(self, event: Event) -> None:
        self._session |= event["session"]
        modalities = self._session.get("output_modalities", self._session.get("modalities"))
        self._spoken = modalities is None or "audio" in modalities
        super()._on_session_update(event)

    def _on_response_create(self, event: Event) -> None:
        wish: dict[str, Any] = self._session | (event.get("response") or {})
        tools = [] if wish.get("tool_choice") == "none" else wish.get("tools") or []
        self._tools = {tool["name"]: tool for tool in tools if tool.get("type") == "function"}
        super()._on_response_create(event)

    def _reply(self, response: WireResponse) -> None:
        said = self._script.answer(self.server.items, self._tools)
        if isinstance(said, Call):
            arguments = json.dumps(said.arguments)
            self._script.called(response.call(said.name, arguments))
            text = f"the model calls {said.name}({arguments})"
            self._report.tell("called", text, name=said.name, arguments=arguments)
        else:
            message = response.message()
            message.write(said)
            if response.spoken:
                message.speak(bytes(len(said) * _BYTES_A_SECOND // _LETTERS_A_SECOND // 2 * 2))
            self._report.tell("said", f'the model says: "{said}"', style="bold", text=said)
        response.done()
        self._report.conversation(self.server.items)


def left_open(items: Sequence[Item]) -> set[str]:
    """The ids of the calls that a conversation has no output of."""
    outputs = {item.call_id for item in items if isinstance(item, FunctionCallOutput)}
    return {item.call_id for item in items if isinstance(item, FunctionCall)} - outputs


class Lobby:
    """Gives each client that connects a model of its own."""

    def __init__(self, rules: Sequence[Rule], patience: Patience, report: Report) -> None:
        self._rules, self._patience, self._report = rules, patience, report
        self._models: list[ScriptedModel] = []

    def claim(self) -> ScriptedModel:
        """Returns a new model."""
        # those that nobody talks to any more are let go
        self._models = [model for model in self._models if model.connection is not None]
        model = ScriptedModel(self._rules, self._patience, ConnectionReport(self._report))
        self._models.append(model)
        return model

    def release(self, reason: str) -> None:
        """Has every model send what it keeps back."""
        for model in self._models:
            model.release(reason)
