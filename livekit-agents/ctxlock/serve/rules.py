"""The rules file: what the model is to say or call when the user's last text matches."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import CtxlockError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Rule", "read_rules"]

_KEYS = ("when", "say", "call", "arguments")


@dataclass(frozen=True)
class Rule:
    """One rule: exactly one of `say` and `call` is there.

    Attributes:
        when: What the user's last text must contain.
        say: What the model says.
        call: The tool that it calls.
        arguments: With these arguments.
    """

    when: re.Pattern[str]
    say: str | None = None
    call: str | None = None
    arguments: dict[str, Any] = field(default_factory=dict)


def read_rules(path: Path) -> list[Rule]:
    """Reads a rules file.

    Raises:
        CtxlockError: It cannot be read, is no TOML, or has a rule of another form.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise CtxlockError(f"The rules file {path} could not be read: {e.strerror}.") from None
    except UnicodeDecodeError as e:
        raise CtxlockError(f"{path} is not UTF-8 (byte {e.start}); save it as UTF-8.") from None
    except tomllib.TOMLDecodeError as e:
        raise CtxlockError(f"{path} is no valid TOML: {e}.") from None
    for key in content:
        if key != "rule":
            raise CtxlockError(f"{path}: unknown key '{key}'; only [[rule]] tables are expected.")
    tables = content.get("rule")
    if not isinstance(tables, list) or not tables:
        raise CtxlockError(f"{path}: there is no rule; expected one [[rule]] table or more.")
    return [_rule(table, f"{path}: rule {number}") for number, table in enumerate(tables, 1)]


def _rule(table: object, where: str) -> Rule:
    if not isinstance(table, dict):
        raise CtxlockError(f"{where}: expected a [[rule]] table, found {table!r}.")
    for key in table:
        if key not in _KEYS:
            raise CtxlockError(f"{where}: unknown key '{key}'; expected {', '.join(_KEYS)}.")
    for key in ("when", "say", "call"):
        if key in table and not (isinstance(table[key], str) and table[key]):
            raise CtxlockError(f"{where}: '{key}' must be a text, not {table[key]!r}.")
    if "when" not in table:
        raise CtxlockError(f"{where}: 'when' is missing; expected a regular expression.")
    if ("say" in table) == ("call" in table):
        found = "both" if "say" in table else "neither"
        raise CtxlockError(f"{where}: expected one of 'say' and 'call', found {found}.")
    if "arguments" in table and "call" not in table:
        raise CtxlockError(f"{where}: 'arguments' are for a 'call', and there is none.")
    if not isinstance(table.get("arguments", {}), dict):
        raise CtxlockError(f"{where}: 'arguments' must be a table, not {table['arguments']!r}.")
    try:
        json.dumps(table.get("arguments", {}), allow_nan=False)
    except (TypeError, ValueError) as e:
        raise CtxlockError(f"{where}: 'arguments' cannot be written as JSON: {e}.") from None
    try:
        when = re.compile(table["when"], re.IGNORECASE)
    except re.error as e:
        raise CtxlockError(f"{where}: 'when' is no regular expression: {e}.") from None
    return Rule(when, table.get("say"), table.get("call"), table.get("arguments", {}))
