"""What a scripted far end answers, decided by the text that it is asked to answer and no more."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass

__all__ = ["SILENCE", "Answer", "answer_for", "answer_for_output", "encoded", "greeting_for"]

SILENCE = bytes(2 * 2400)
"""A tenth of a second of sound, 16 bits a sample, 24,000 samples a second."""


def encoded(sound: bytes = SILENCE) -> str:
    """Sound as JSON has it."""
    return base64.b64encode(sound).decode()


@dataclass(frozen=True)
class Answer:
    """What the model does.

    Attributes:
        text: What it says; with a call it says that first. Empty says nothing.
        tool: The tool that it calls, if any.
        arguments: The call's arguments, as JSON.
    """

    text: str = ""
    tool: str | None = None
    arguments: str = "{}"


_CALL = re.compile(r"\b(?P<how>quietly )?call (?P<tool>\w+)(?: with (?P<topic>\w+))?")


def answer_for(text: str) -> Answer:
    """The answer to a text of the user's, or to instructions for one reply.

    ``call NAME`` has the model call that tool after it has said so, ``quietly call NAME`` without
    a word, ``call NAME with WORD`` with the argument ``topic``. All else is echoed.
    """
    if match := _CALL.search(text):
        topic, tool = match["topic"], match["tool"]
        arguments = f'{{"topic": "{topic}"}}' if topic else "{}"
        return Answer("" if match["how"] else f"I will call {tool}.", tool, arguments)
    return Answer(f"You said: {text}" if text else "I am listening.")


def answer_for_output(output: str) -> Answer:
    """The answer to a tool's output."""
    return Answer(f"The tool says: {output}")


def greeting_for(instructions: str) -> Answer:
    """The answer to a request for a reply that no text of the user's precedes."""
    return answer_for(instructions) if "call " in instructions else Answer(f"Hello. {instructions}")
