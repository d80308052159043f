"""The command `ctxlock doctor`: what it prints, writes and exits with."""

from __future__ import annotations

import io
import json
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from cli import run, says
from doctor_lines import Script, keeping, losing, production


def written(path: Path, *scripts: Script) -> Path:
    lines = [production(w, job_id=f"AJ_{n}") for n, s in enumerate(scripts) for w in s.written]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def access_log(folder: Path) -> Path:
    """A log without events."""
    path = folder / "access.log"
    path.write_text("GET / 200\n", encoding="utf-8")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return written(tmp_path / "agent.log", losing("a"), keeping("b"))


def test_something_lost(log: Path) -> None:
    said = says(1, "doctor", log).out
    assert said.startswith("1 of 2 calls lost an item of the conversation.\n")
    assert "  LOST, strong evidence: the output of lookup (10 characters), item_a6\n" in said
    assert "    race: text turn during a tool output\n" in said
    assert "    then the model called lookup again, with the same arguments, line 23" in said
    assert "AJ_1" not in said
    assert "Strong evidence: that happened too soon for anybody to have meant it." in said
    assert "What to do: " in said
    assert "Back: " not in said  # nothing is


def test_nothing_lost(tmp_path: Path) -> None:
    said = says(0, "doctor", written(tmp_path / "agent.log", keeping())).out
    assert said.startswith("Nothing lost by strong evidence in 1 call.\n")
    assert "Lost: " not in said and "What to do: " not in said


def test_weak_evidence_is_no_harm(tmp_path: Path) -> None:
    script = Script()
    output = script.looked_up()
    script.update(delete=(output,))
    said = says(0, "doctor", written(tmp_path / "agent.log", script)).out
    summary = "Nothing lost by strong evidence in 1 call; 1 may have lost one, by weak evidence.\n"
    assert said.startswith(summary)
    assert "  MAYBE LOST, weak evidence: the output of lookup" in said
    assert "What to do: " not in said


def test_json(log: Path) -> None:
    text = says(1, "doctor", log, "--json").out
    told = json.loads(text)
    assert text == json.dumps(told, indent=2, sort_keys=True) + "\n"
    assert told["format"] == 1 and told["lost"] is True
    assert told["summary"]["calls"] == 2
    assert told["summary"]["lost"] == {"strong": 1, "weak": 0}
    (call,) = told["calls"]
    (loss,) = call["losses"]
    assert call["name"] == "job AJ_0"
    assert loss["item"] == {
        "id": "item_a6",
        "type": "function_call_output",
        "tool": "lookup",
        "call_id": loss["item"]["call_id"],
        "length": 10,
    }
    at = {key: loss[key]["line"] for key in ("acknowledged", "asked", "asked_to", "confirmed")}
    assert at == {"acknowledged": 13, "asked": 14, "asked_to": 15, "confirmed": 16}
    assert loss["acknowledged"]["time"].startswith("2026-09-21T14:13:20")


class Outline(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.harm = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.harm += "harm" in (dict(attrs).get("class") or "").split()


def test_page(log: Path, tmp_path: Path) -> None:
    target = tmp_path / "lost.html"
    assert f"The diagrams are in {target}." in says(1, "doctor", log, "--html", target).out
    outline = Outline()
    text = target.read_text(encoding="utf-8")
    outline.feed(text)
    assert outline.tags.count("svg") == 1 and outline.harm == 1
    assert "script" not in outline.tags
    for line in ("line 13", "line 14", "line 16", "line 23"):
        assert line in text
    assert "No texts are shown" in text and "two nights" not in text
    assert "no lock" not in text  # a log does not say that there is none


def test_page_with_texts_says_that_it_has_them(log: Path, tmp_path: Path) -> None:
    target = tmp_path / "lost.html"
    assert run("doctor", log, "--html", target, "--with-text") == 1
    text = target.read_text(encoding="utf-8")
    assert "It says: two nights" in text
    assert "It shows what callers said" in text and "No texts are shown" not in text


def test_a_page_that_cannot_be_written(log: Path, tmp_path: Path) -> None:
    assert run("doctor", log, "--html", tmp_path / "no" / "lost.html") == 3


def test_a_page_is_not_written_over_a_log(log: Path) -> None:
    before = log.read_bytes()
    assert "--html" in says(2, "doctor", log, "--html", log.parent / "." / log.name).err
    assert log.read_bytes() == before


def test_json_and_a_page(log: Path, tmp_path: Path) -> None:
    target = tmp_path / "lost.html"
    assert json.loads(says(1, "doctor", log, "--json", "--html", target).out)["lost"] is True
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_no_page_is_left_of_a_log_without_events(tmp_path: Path) -> None:
    path, target = access_log(tmp_path), tmp_path / "lost.html"
    assert run("doctor", path, "--html", target) == 3
    assert list(tmp_path.iterdir()) == [path]


def test_advice_for_both_readers(log: Path, tmp_path: Path) -> None:
    said = says(1, "doctor", log).out
    audit, verify = said.index("ctxlock audit"), said.index("ctxlock verify on that Python")
    assert audit < verify < said.index("If it is: the likeliest cause is a stale copy")

    waited = {
        "message": "a realtime context update waited for another one",
        "job_id": "AJ_0",
        "timestamp": "2026-09-21T14:13:21+00:00",
    }
    with log.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(waited) + "\n")
    said = says(1, "doctor", log).out
    assert "the agent runs the patched release already, in the scope full" in said.replace(
        "\n", " "
    )
    assert "Then the likeliest cause is a stale copy of the application's own" in said
    assert "ctxlock audit" not in said and "how to install it" not in said


def test_advice_about_what_the_lock_does_not_keep(tmp_path: Path) -> None:
    script = Script()
    script.update(script.message())
    turn = script.heard()
    script.update(script.message(), delete=(turn,))
    said = says(1, "doctor", written(tmp_path / "agent.log", script)).out
    assert "the scope full does" in said and "the patch ends them" not in said


def test_wrong_usage() -> None:
    assert "LOG" in says(2, "doctor").err


def test_another_log(tmp_path: Path) -> None:
    said = says(3, "doctor", access_log(tmp_path)).err
    for word in ("LK_OPENAI_DEBUG=1", "LIVEKIT_LOG_LEVEL=DEBUG", "access.log"):
        assert word in said


def test_logs_without_events_are_named_beside_one_with_some(log: Path, tmp_path: Path) -> None:
    other = access_log(tmp_path)
    assert f"Without any event: {other}.\n" in says(1, "doctor", log, other).out


def test_events_are_counted_alike_in_the_summary_and_the_call(tmp_path: Path) -> None:
    script = losing()
    said = says(1, "doctor", written(tmp_path / "agent.log", script)).out
    pieces = sum(event["type"].endswith(".delta") for _, _, event in script.written)
    events = len(script.written) - pieces
    assert pieces
    assert f": {events} with events, {pieces} with pieces of replies, " in said
    assert f"job AJ_0: {events} events, " in said


def test_nothing_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert "in standard input (0 lines)" in says(3, "doctor", "-").err


def test_no_file(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in says(3, "doctor", tmp_path / "agent.log").err


def test_standard_input(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(log.read_bytes())))
    assert run("doctor", "-") == 1
