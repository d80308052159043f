"""The record in a patched wheel: what is read from it, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from packages import release, write_wheel
from packaging.version import Version

from ctxlock import PATCH_NUMBER
from ctxlock.errors import CtxlockError
from ctxlock.release import Scope
from ctxlock.target import ADDED, TARGET
from ctxlock.wheels.overlay import build_overlay
from ctxlock.wheels.provenance import FORMAT, Provenance, read_provenance, wheel_provenance
from ctxlock.wheels.upstream import read_wheel

RECORD: dict[str, Any] = {
    "format": FORMAT,
    "upstream": "1.8.4",
    "patch": 7,
    "scope": "full",
    "added": {ADDED: "2"},
    "target": TARGET,
    "sha256": {"before": "0", "after": "1"},
    "sites": [],
}


def read(record: object) -> Provenance:
    return read_provenance(json.dumps(record).encode(), "x/ctxlock.json")


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in RECORD.items() if name != key}


def test_what_is_read() -> None:
    expected = Provenance(Version("1.8.4"), 7, "full", {TARGET: "1", ADDED: "2"})
    assert read(RECORD) == expected
    assert read({**RECORD, "more": 1}) == expected


@pytest.mark.parametrize("scope", ["lock", "full"])
def test_what_a_build_writes_is_read(scope: Scope, tmp_path: Path) -> None:
    stock = write_wheel(tmp_path / "livekit_agents-1.8.4-py3-none-any.whl", release())
    wheel = build_overlay(read_wheel(stock), tmp_path / "dist", scope).path
    record = wheel_provenance(wheel)
    assert (record.upstream, record.patch, record.scope) == (Version("1.8.4"), PATCH_NUMBER, scope)
    assert record.sha256.keys() == ({TARGET, ADDED} if scope == "full" else {TARGET})


@pytest.mark.parametrize(
    "record",
    [
        *([], "text", 3, None, {}),
        *(without(key) for key in RECORD if key != "sites"),
    ],
    ids=lambda record: ",".join(record) if isinstance(record, dict) else repr(record),
)
def test_garbled(record: object) -> None:
    with pytest.raises(CtxlockError, match=r"^x/ctxlock.json does not say what was patched") as e:
        read(record)
    assert ("a JSON object was expected" in str(e.value)) == (not isinstance(record, dict))


@pytest.mark.parametrize("key", ["format", "upstream", "patch", "scope", "added", "target"])
def test_names_the_key_that_is_missing(key: str) -> None:
    with pytest.raises(CtxlockError, match=f"its key '{key}' is missing; build or fetch"):
        read(without(key))
    with pytest.raises(CtxlockError, match="its key 'format' is missing"):
        read({})
    with pytest.raises(CtxlockError, match="its key 'after' is missing"):
        read({**RECORD, "sha256": {}})


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "1"},
        {"format": True},
        {"format": 0},
        {"upstream": "newest"},
        {"upstream": 1},
        {"patch": "1"},
        {"scope": "wide"},
        {"added": ["x"]},
        {"added": {"/etc/hosts": "0"}},
        {"added": {"../x.py": "0"}},
        {"added": {ADDED: None}},
        {"target": "livekit/agents/other.py"},
        {"target": {}},
        {"sha256": "1"},
        {"sha256": {"after": 1}},
    ],
    ids=json.dumps,
)
def test_garbled_values(changes: dict[str, Any]) -> None:
    with pytest.raises(CtxlockError, match="was patched: a value in it is not one that"):
        read({**RECORD, **changes})


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\xff", b"[" * 100_000])
def test_no_json(content: bytes) -> None:
    with pytest.raises(CtxlockError, match="does not say what was patched"):
        read_provenance(content, "x/ctxlock.json")


def test_of_a_later_format() -> None:
    """Whatever else has changed in it."""
    with pytest.raises(CtxlockError, match=r"^x/ctxlock.json has format 2, but this .* format 1"):
        read({"format": FORMAT + 1})
