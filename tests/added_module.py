"""The module that the scope `full` adds, by itself, and items to try it with."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import ctxlock
from ctxlock.target import MODULE
from livekit.agents import llm


def added_module() -> ModuleType:
    """The module that the wheel of the scope `full` has, whatever is installed here."""
    file = Path(ctxlock.__file__).parent / "payload" / f"{MODULE}.py"
    spec = importlib.util.spec_from_file_location(MODULE, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def user(name: str, text: str = "text", at: float = 0.0) -> llm.ChatMessage:
    return llm.ChatMessage(id=name, role="user", content=[text] if text else [], created_at=at)


def ids(items: Iterable[llm.ChatItem]) -> list[str]:
    return [item.id for item in items]
