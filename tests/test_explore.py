from __future__ import annotations

import ast
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cli import run, says
from rich.console import Console

from ctxlock.cli import explore as explore_command
from ctxlock.environments.runner import run_module
from ctxlock.reports.exploration import Exploration


def group(kinds: list[str], orders: dict[str, list[int]], **values: Any) -> dict[str, Any]:
    given = {"disturbances": 1, "limits": {}, "replays": {}, "exhausted": False, "seconds": 1.0}
    given |= {"integrity": False, "problems": {}}
    return {"kinds": kinds, "orders": orders, **given, **values}


def exploration(*groups: dict[str, Any], integrity: bool = False) -> Exploration:
    report = {
        "format": 1,
        "livekit_agents": "1.8.9",
        "kinds": ["text turn", "tool output"],
        "integrity": integrity,
        "problems": ["1 server item lost", "6 frozen"] if integrity else [],
        "limits": {"late deletion": "It arrived late."},
        "seconds": 2.0,
        "groups": list(groups),
    }
    return Exploration(report)


PAIR = ["text turn", "tool output"]
CLEAN = group(PAIR, {"text turn > tool output": [3, 0, 0], "tool output > text turn": [1, 0, 0]})
LIMITED = group(PAIR, {"text turn > tool output": [3, 0, 2]}, limits={"late deletion": 2})
BAD = group(
    PAIR,
    {"text turn > tool output": [4, 2, 0]},
    replays={"x is lost": ["start text turn 1", "start tool output 2"]},
)
ENDLESS = group(PAIR, {"text turn > tool output": [5, 0, 0]}, exhausted=True)


@pytest.mark.parametrize(
    ("found", "verdict", "code"),
    [
        pytest.param(exploration(CLEAN), "linearizable", 0, id="clean"),
        pytest.param(exploration(CLEAN, LIMITED), "linearizable", 0, id="known-limit"),
        pytest.param(exploration(CLEAN, BAD), "violated", 1, id="violated"),
        pytest.param(exploration(ENDLESS, BAD), "violated", 1, id="violated-and-unknown"),
        pytest.param(exploration(CLEAN, ENDLESS), "unknown", 3, id="unknown"),
        pytest.param(exploration(), "unknown", 3, id="nothing"),
    ],
)
def test_verdict_is_the_exit_code(
    found: Exploration, verdict: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explore_command, "_environment", lambda *_: "python")
    monkeypatch.setattr(explore_command, "run_module", lambda *_: json.dumps(found.report))
    assert found.verdict == verdict
    assert verdict in says(code, "explore").out
    assert json.loads(says(code, "explore", "--json").out)["verdict"] == verdict


def printed(found: Exploration) -> str:
    text = io.StringIO()
    console = Console(width=80, file=text)
    for table in found.heat_maps():
        console.print(table)
    return text.getvalue()


def test_heat_map_counts_by_the_first_two() -> None:
    rows = printed(exploration(CLEAN, BAD)).splitlines()
    [turn] = [row for row in rows if "1 text turn" in row]
    assert turn.split()[-2:] == ["-", "2/7"]


def test_triples_have_a_table_of_their_own() -> None:
    triple = group([*PAIR, "text turn"], {"text turn > text turn > tool output": [9, 1, 0]})
    assert printed(exploration(CLEAN, triple)).count("first \\ then") == 2


def test_what_was_left_out_is_said() -> None:
    triple = group([*PAIR, "text turn"], {"text turn > text turn > tool output": [9, 1, 0]})
    triple["disturbances"] = 0
    *_, last = exploration(CLEAN, triple).remarks()
    assert "triples with a failure" in last and "groups of 4" in last


def test_problems_are_counted_by_kind() -> None:
    bad = {**BAD, "integrity": True, "problems": {"6 frozen": 2}}
    found = exploration(CLEAN, bad, integrity=True)
    text = io.StringIO()
    [table] = found.problems()
    Console(width=80, file=text).print(table)
    rows = text.getvalue().splitlines()
    assert any("1 server item lost" in row and "0/8" in row for row in rows)
    assert any("6 frozen" in row and "2/8" in row for row in rows)
    assert "integrity=True" in next(found.replays())


def test_there_is_no_such_table_without_integrity() -> None:
    assert not list(exploration(CLEAN, BAD).problems())
    assert "integrity" not in next(exploration(CLEAN, BAD).replays())


@pytest.mark.parametrize("flag", [[], ["--integrity"]])
def test_integrity_is_passed_on(flag: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []

    def run_it(python: str, scratch: Path, command: list[str], on_line: Any) -> str:
        given.append(command)
        return json.dumps(exploration(CLEAN).report)

    monkeypatch.setattr(explore_command, "_environment", lambda *_: "python")
    monkeypatch.setattr(explore_command, "run_module", run_it)
    assert run("explore", *flag) == 0
    assert ("--integrity" in given[0]) == bool(flag)


def test_replay_is_a_test() -> None:
    [text] = exploration(BAD).replays()
    module = ast.parse(text)
    assert "# x is lost" in text
    assert any(isinstance(node, ast.FunctionDef) for node in module.body)


def test_known_limits_are_explained() -> None:
    assert any("It arrived late." in remark for remark in exploration(LIMITED).remarks())


@pytest.mark.parametrize(
    "arguments",
    [["--upstream", "1.8.9", "--stock", "1.8.9"], ["--depth", "1"], ["--jobs", "0"]],
)
def test_wrong_usage(arguments: list[str]) -> None:
    assert run("explore", *arguments) == 2


def test_more_than_a_pipe_holds_is_read(tmp_path: Path) -> None:
    script = "import sys; print('x' * 300_000); print('done', file=sys.stderr)"
    (tmp_path / "large.py").write_text(script, encoding="utf-8")
    said: list[str] = []
    assert len(run_module(sys.executable, tmp_path, ["large"], said.append)) == 300_001
    assert said == ["done"]


SEVERAL = ["two tool outputs", "replacement adding three"]
BESIDE = [
    group(["text turn", SEVERAL[1]], {f"{SEVERAL[1]} > text turn": [4, 1, 0]}),
    group(["text turn", SEVERAL[1]], {f"text turn > {SEVERAL[1]}": [5, 2, 0]}),
    group([SEVERAL[1]] * 2, {f"{SEVERAL[1]} > {SEVERAL[1]}": [8, 1, 0]}),
]


def test_updates_of_several_items_have_a_table_of_their_own() -> None:
    found = exploration(CLEAN, *BESIDE)
    found.report["several"] = SEVERAL
    found.report["kinds"] = [*PAIR, *SEVERAL]
    text = printed(found)
    assert max(map(len, text.splitlines())) <= 80
    pairs, beside = text.split("pairs with several items")
    assert not any(kind in pairs for kind in SEVERAL)
    rows = {row[:24].strip(): row[24:].split() for row in beside.splitlines()}
    assert rows["text turn"] == ["-", "3/9"]
    assert rows["tool output"] == ["-", "-"]
    assert rows[SEVERAL[1]] == ["-", "1/8"]


def test_wide_heat_map_shows_the_violated_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxlock.reports.exploration._TERMINAL", 40)
    found = exploration(BAD)
    found.report["kinds"] = [*PAIR, *(f"kind {number}" for number in range(3, 16))]
    title, header, _, row, *_ = printed(found).splitlines()
    assert "violated schedules" in title
    assert header.split() == ["first", "\\", "then", *map(str, range(1, 16))]
    assert row.split() == ["1", "text", "turn", "-", "2", *["-"] * 13]
