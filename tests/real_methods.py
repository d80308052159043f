"""The methods of real releases, cut out of the published files, for the tests that edit them."""

from __future__ import annotations

import ast
import os
from typing import Any

import pytest
from edits import span

from ctxlock.verified import LAST_WITHOUT_LOCK, NEWEST

RELEASES = [*dict.fromkeys(("1.0.23", "1.5.17", LAST_WITHOUT_LOCK, "1.8.9", NEWEST))]
CASES = int(os.environ.get("CTXLOCK_FUZZ", "200"))
PARTS = 4
"""A case is found again by its number, which is its seed: no chance, and no shrinking, in it."""


def cut(text: str) -> dict[str, str]:
    """The methods of the activity, each as it stands."""
    lines = text.split("\n")
    (activity,) = (
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef) and node.name == "AgentActivity"
    )
    return {
        node.name: "\n".join(lines[slice(*span(node))]) + "\n"
        for node in activity.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


def say(request: pytest.FixtureRequest, said: str) -> None:
    """Prints it, whatever is captured."""
    capture: Any = request.config.pluginmanager.get_plugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"\n{said}")
