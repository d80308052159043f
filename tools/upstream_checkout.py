"""Reads a checkout of livekit/agents: its release, its realtime tests, and what those need."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from dependency_groups import resolve
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from tomlkit.exceptions import TOMLKitError

from ctxlock.errors import CtxlockError
from ctxlock.release import parse

__all__ = ["VERSION", "Checkout", "read_checkout"]

VERSION = "livekit-agents/livekit/agents/version.py"
"""The file that names a checkout's release."""

_GROUPS = ("dev", "test", "tests")
"""The dependency groups that test tools may stand in."""

_SIGNS = ("RealtimeModel", "fake_realtime")
"""What a test is about realtime that does not say so in its path."""


@dataclass(frozen=True)
class Checkout:
    """What there is to run.

    Attributes:
        root: The checkout's folder.
        release: The release that its livekit-agents calls itself.
        tests: The files of realtime tests, as paths from `root`.
        requirements: What has to be installed for them beside livekit-agents.
    """

    root: Path
    release: Version
    tests: tuple[str, ...]
    requirements: tuple[str, ...]


def read_checkout(root: Path) -> Checkout:
    """Reads a checkout; nothing is written there.

    Raises:
        CtxlockError: It is none, or its release, its tests or what they need cannot be read.
    """
    if not root.is_dir():
        raise CtxlockError(
            f"{root} is no folder; name a checkout of livekit/agents, the folder that git cloned."
        )
    if not (root / VERSION).is_file():
        raise CtxlockError(
            f"{root} is no checkout of livekit/agents: {VERSION} was expected in it; name the "
            "folder that git cloned, with its files checked out."
        )
    release = _release(root / VERSION)
    tests = tuple(sorted(_realtime_tests(root)))
    if not tests:
        raise CtxlockError(
            f"{root} has no realtime tests: a tests/**/test_*.py was expected that has `realtime` "
            f"in its path, or {' or '.join(_SIGNS)} in its text; check out a later release."
        )
    plugins = sorted(_plugins(root, tests))
    tools = _test_tools(root / "pyproject.toml")
    return Checkout(root, release, tests, (*(f"{name}=={release}" for name in plugins), *tools))


def _release(file: Path) -> Version:
    hint = 'a line such as `__version__ = "1.8.9"` was expected; check out a release.'
    try:
        statements = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError) as e:
        raise CtxlockError(f"{file} could not be read ({e}); {hint}") from None
    for statement in statements:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__version__":
            if isinstance(statement.value, ast.Constant):
                return parse(statement.value.value, f"__version__ in {file}")
            break
    raise CtxlockError(f"{file} names no release: {hint}")


def _realtime_tests(root: Path) -> Iterator[str]:
    for file in (root / "tests").rglob("test_*.py"):
        path = file.relative_to(root).as_posix()
        text = file.read_text(encoding="utf-8", errors="replace")
        if "realtime" in path.lower() or any(sign in text for sign in _SIGNS):
            yield path


def _plugins(root: Path, tests: Iterable[str]) -> set[str]:
    """The plugins that `tests` import, as far as they are the checkout's own."""
    names: set[str] = set()
    for test in tests:
        try:
            nodes = [*ast.walk(ast.parse((root / test).read_bytes()))]
        except (SyntaxError, ValueError):
            continue  # pytest says so, for each of the installs
        for node in nodes:
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                names.update(f"{node.module}.{alias.name}" for alias in node.names)
    parts = [name.split(".") for name in names if name.startswith("livekit.plugins.")]
    plugins = {f"livekit-plugins-{canonicalize_name(part[2])}" for part in parts}
    return {name for name in plugins if (root / "livekit-plugins" / name).is_dir()}


def _test_tools(pyproject: Path) -> list[str]:
    """What the checkout's developers install to run its tests, but for its own packages."""
    try:
        document: dict[str, Any] = tomlkit.parse(pyproject.read_text(encoding="utf-8")).unwrap()
        groups = document.get("dependency-groups", {})
        wishes = [*resolve(groups, *(name for name in _GROUPS if name in groups))]
        wishes += document.get("tool", {}).get("uv", {}).get("dev-dependencies", [])
        named = [(Requirement(wish).name, wish) for wish in wishes]
    except (OSError, TOMLKitError, InvalidRequirement, LookupError, TypeError, ValueError) as e:
        raise CtxlockError(
            f"{pyproject} does not say what the tests need ({e}); a dependency group `dev` was "
            "expected, as a release has it."
        ) from None
    return [wish for name, wish in named if not canonicalize_name(name).startswith("livekit")]
