"""Every schedule of some pairs on the patched release; the seed of hashes makes no difference."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

PAIRS = ("text turn,tool output", "tool output,spoken message")


def explored(seed: str, *pairs: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "ctxlock.races.explore", "--depth", "2"]
    command += [f"--only={pair}" for pair in pairs]
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stdout, done.stderr
    groups: list[dict[str, Any]] = json.loads(done.stdout)["groups"]
    for group in groups:
        del group["seconds"]
    return groups


@pytest.fixture(scope="module")
def groups() -> list[dict[str, Any]]:
    return explored("1", *PAIRS)


def test_no_schedule_loses_an_item(groups: list[dict[str, Any]]) -> None:
    assert len(groups) == 2
    for group in groups:
        assert not group["exhausted"]
        assert sum(counts[0] for counts in group["orders"].values()) > 10
        assert sum(counts[1] for counts in group["orders"].values()) == 0, group["replays"]


def test_the_seed_of_hashes_makes_no_difference(groups: list[dict[str, Any]]) -> None:
    assert explored("2", *PAIRS) == groups
