"""The items of a conversation as the scripted server keeps them, without livekit.agents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["FunctionCall", "FunctionCallOutput", "Item", "Message"]


@dataclass
class Message:
    """What somebody said; of sound and pictures only the words are kept."""

    id: str
    role: str
    content: list[str] = field(default_factory=list)
    type: Literal["message"] = "message"

    @property
    def text_content(self) -> str:
        """All of its words."""
        return "\n".join(self.content)


@dataclass
class FunctionCall:
    """The model's call of a tool."""

    id: str
    call_id: str
    name: str
    arguments: str
    type: Literal["function_call"] = "function_call"


@dataclass
class FunctionCallOutput:
    """A tool's result; the protocol does not tell which tool's, nor whether it is an error."""

    id: str
    call_id: str
    output: str
    name: str = ""
    is_error: bool = False
    type: Literal["function_call_output"] = "function_call_output"


Item = Message | FunctionCall | FunctionCallOutput
