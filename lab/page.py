"""Writes docs/providers.md from the reports of runs: `python -m lab.page REPORT... > FILE`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from packaging.version import Version

from .options import exits

__all__ = ["BadReport", "Report", "app", "read", "render"]

NAMES = {
    "aws": "Amazon Nova Sonic",
    "azure_openai": "OpenAI on Azure",
    "azure_voice_live": "Azure Voice Live",
    "duplex": "GPT-Live (duplex)",
    "fallback": "Fallback adapter",
    "google": "Gemini Live",
    "nvidia": "NVIDIA PersonaPlex",
    "openai": "OpenAI",
    "phonic": "Phonic",
    "ultravox": "Ultravox",
    "xai": "xAI Grok",
}
"""What people call the providers."""

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Report:
    """What one run of the lab printed.

    Attributes:
        release: The livekit-agents release.
        delay: Milliseconds before acknowledgements.
        verdicts: By scope, provider and step.
    """

    release: str
    delay: float
    verdicts: dict[Key, dict[str, Any]]


class BadReport(Exception):
    """A file is not what a run of the lab printed."""


def read(file: Path) -> Report:
    """Reads what ``python -m lab --json`` printed.

    Raises:
        BadReport: It is something else.
    """
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as e:
        raise _bad(file, f"it cannot be read ({e.strerror})") from None
    except ValueError:
        raise _bad(file, "it is no JSON") from None
    try:
        verdicts = {
            (v["scope"], v["provider"], v["step"]): {"is": v["is"], "seen": v["seen"]}
            for v in data["verdicts"]
        }
        return Report(str(Version(data["release"])), float(data["delay"]), verdicts)
    except (KeyError, TypeError, ValueError):
        why = "an object with `release`, `delay` and a list of `verdicts` was expected"
        raise _bad(file, why) from None


def _bad(file: Path, why: str) -> BadReport:
    return BadReport(f"{file} is no output of `python -m lab --json`: {why}.")


def render(reports: Sequence[Report]) -> str:
    """The page."""
    reports = sorted(reports, key=lambda report: report.delay)
    reports.sort(key=lambda report: Version(report.release), reverse=True)
    parts = [_INTRODUCTION]
    for release in dict.fromkeys(report.release for report in reports):
        runs = [report for report in reports if report.release == release]
        parts += [f"## {release}\n", _summary(runs), *_details(runs)]
    return "\n".join(parts)


def _summary(runs: Sequence[Report]) -> str:
    scopes = _in_order(scope for run in runs for scope, _, _ in run.verdicts)
    judged = {(scope, id(run)) for run in runs for scope, _, _ in run.verdicts}
    columns = [(scope, run) for scope in scopes for run in runs if (scope, id(run)) in judged]
    head = ["provider", *(f"`{scope}`, {run.delay:g} ms" for scope, run in columns)]
    rows = []
    for name in _in_order(name for run in runs for _, name, _ in run.verdicts):
        rows.append([NAMES.get(name, name), *(_sum(run, scope, name) for scope, run in columns)])
    return _table(head, rows)


def _sum(run: Report, scope: str, name: str) -> str:
    kinds = Counter(
        verdict["is"] for (s, n, _), verdict in run.verdicts.items() if (s, n) == (scope, name)
    )
    judged = kinds["same"] + kinds["inside"] + kinds["differs"]
    said = [f"{kinds['same']} of {judged} as stock"] if kinds["same"] != judged else []
    said += [f"{kinds['inside']} in calls"] if kinds["inside"] else []
    said += [f"{kinds['differs']} differ"] if kinds["differs"] else []
    said += [f"{kinds['unjudged']} not judged"] if kinds["unjudged"] else []
    return ", ".join(said) or f"all {judged} as stock"


def _details(runs: Sequence[Report]) -> Iterable[str]:
    run = runs[0]
    for scope in _in_order(scope for scope, _, _ in run.verdicts):
        names = _in_order(name for s, name, _ in run.verdicts if s == scope)
        steps = _in_order(step for s, _, step in run.verdicts if s == scope)
        rows = [
            [step, *(_cell(run.verdicts.get((scope, name, step))) for name in names)]
            for step in steps
        ]
        yield f"\n### `{scope}`, {run.delay:g} ms, step by step\n"
        yield _table(["step", *(NAMES.get(name, name) for name in names)], rows)


def _cell(verdict: dict[str, Any] | None) -> str:
    if verdict is None:
        return ""
    words = {"same": "same", "inside": "calls", "unsupported": "–", "unjudged": "not judged"}  # noqa: RUF001
    return words.get(verdict["is"]) or f"**{verdict['seen']}**"


def _in_order(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


_INTRODUCTION = """\
# Is it what stock does, with my provider?

*Stock* is livekit-agents as published. Where no two updates overlap, a patched livekit-agents
should do what stock does. The lab (`lab/`, `uv run nox -s providers`) runs the same steps over
the plugin of each provider: on stock twice, then with the patch. The steps are starts,
greetings, typed and spoken turns, tools, contexts added to and trimmed, new instructions and
tools, handoffs, interruptions, and dropped connections. The far ends are scripted. They listen
on loopback, or stand in for a client. No provider's service is asked.

These are compared: the connections that are opened; what is sent on each, in order and at which
moment; what is logged from WARNING up; error events and exceptions; the agent's context; the
history; the session's events; what became of each speech; and the tasks that are left. Ids are
named by their first appearance. Wall-clock times and the contents of metrics are left out.

- **same**: nothing differs. A failure counts as any other fact: what fails on stock fails
  alike.
- **calls**: outside of the plugin nothing differs, but the plugin is called from another task,
  at another step of the loop, or with another object.
- **a number**: so many lines differ.
- **–**: the provider has no such thing.
- *not judged*: stock does not do the same twice.

With `full` one thing differs: a system message comes back after a dropped connection. This [is
meant](integrity.md).

The delay is the time that each acknowledgement takes. With a delay, and on the older release,
only the scope `lock` was run. `uv run nox -s provider_page` writes this page.
"""  # noqa: RUF001


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog="Exit codes: 0 it is written, 2 wrong usage, 3 a report cannot be read.")
def main(
    reports: Annotated[
        list[Path],
        typer.Argument(metavar="REPORT", help="Files, each printed by python -m lab --json."),
    ],
) -> None:
    """Writes the page about the providers, from the reports of runs, to standard output."""
    with exits(BadReport):
        sys.stdout.write(render([read(file) for file in reports]))


if __name__ == "__main__":
    app()
