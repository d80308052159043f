from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lab.page import BadReport, Report, app, read, render


def report(release: str, delay: float, **kinds: str) -> Report:
    verdicts = {
        ("lock", "google", step.replace("_", " ")): {"is": kind, "seen": 7}
        for step, kind in kinds.items()
    }
    return Report(release, delay, verdicts)


def test_a_provider_as_stock_in_all_steps_says_so() -> None:
    page = render([report("1.8.9", 0, start="same", go_away="unsupported")])
    assert "| Gemini Live | all 1 as stock |" in page
    assert "| go away | – |" in page  # noqa: RUF001


def test_what_differs_is_counted_and_not_called_as_stock() -> None:
    page = render([report("1.8.9", 0, start="same", typed="differs", say="inside", x="unjudged")])
    assert "| Gemini Live | 1 of 3 as stock, 1 in calls, 1 differ, 1 not judged |" in page
    assert "| typed | **7** |" in page
    assert "| say | calls |" in page


def test_the_newest_release_and_the_shortest_delay_come_first() -> None:
    page = render(
        [report("1.7.1", 0, a="same"), report("1.8.9", 30, a="same"), report("1.8.9", 0, a="same")]
    )
    assert page.index("## 1.8.9") < page.index("## 1.7.1")
    assert "| provider | `lock`, 0 ms | `lock`, 30 ms |" in page


def test_a_scope_has_columns_where_it_was_run() -> None:
    whole = report("1.8.9", 0, a="same")
    whole.verdicts["full", "google", "a"] = {"is": "differs", "seen": 1}
    page = render([whole, report("1.8.9", 30, a="same")])
    assert "| provider | `lock`, 0 ms | `lock`, 30 ms | `full`, 0 ms |" in page


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, r"it cannot be read \(No such file or directory\)"),
        ("no report", "it is no JSON"),
        ("", "it is no JSON"),
        ("{}", "an object with `release`"),
        ("[]", "an object with `release`"),
        ('{"release": "1.8.9", "delay": 0, "verdicts": [{}]}', "an object with `release`"),
        ('{"release": "x", "delay": 0, "verdicts": []}', "an object with `release`"),
    ],
)
def test_what_is_no_report_is_refused(tmp_path: Path, content: str | None, why: str) -> None:
    file = tmp_path / "report.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(
        BadReport, match=f"report.json is no output of `python -m lab --json`: {why}"
    ):
        read(file)
    done = CliRunner().invoke(app, [str(file)])
    assert done.exit_code == 3
    assert done.stderr.count("\n") == 1 and not done.stdout


def test_a_report_is_read_and_its_page_is_written(tmp_path: Path) -> None:
    verdict = {"scope": "lock", "provider": "google", "step": "start", "is": "same", "seen": 0}
    file = tmp_path / "report.json"
    file.write_text(json.dumps({"release": "1.8.9", "delay": 0, "verdicts": [verdict]}))
    assert read(file).verdicts["lock", "google", "start"]["is"] == "same"
    done = CliRunner().invoke(app, [str(file)])
    assert (done.exit_code, done.stdout) == (0, render([read(file)]))
    assert CliRunner().invoke(app, []).exit_code == 2
    assert CliRunner().invoke(app, ["--help"]).exit_code == 0
