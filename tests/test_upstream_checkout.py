"""What `tools/upstream_checkout.py` reads from small invented checkouts, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from packages import put
from packaging.version import Version
from upstream_checkout import VERSION, read_checkout

from ctxlock.errors import CtxlockError

PYPROJECT = """\
[dependency-groups]
dev = ["pytest>=8", "livekit-agents", { include-group = "more" }]
more = ["numpy"]
docs = ["sphinx"]
"""

TEST = """\
import livekit.plugins.some_voice.realtime
from livekit.plugins import other, elsewhere
from livekit.plugins.third.llm import Model
from livekit.agents import llm
"""


def checkout(folder: Path, **changes: str | None) -> Path:
    """A checkout; changes by file name, None takes the file away."""
    files = {
        VERSION: '__version__ = "1.8.4"\n',
        "pyproject.toml": PYPROJECT,
        "tests/test_realtime_things.py": TEST,
        "tests/test_chat.py": "",
        "tests/test_session.py": "model = RealtimeModel()\n",
        "tests/realtime/test_deep.py": "not ( Python\n",
        "tests/fake_realtime.py": "",
        "livekit-plugins/livekit-plugins-some-voice/x": "",
        "livekit-plugins/livekit-plugins-other/x": "",
        "livekit-plugins/livekit-plugins-third/x": "",
        "livekit-plugins/livekit-plugins-unused/x": "",
    }
    for path in [*files]:
        change = changes.get(Path(path).stem, "")
        if change is None:
            del files[path]
        elif change:
            files[path] = change
    put(folder, {path: text.encode() for path, text in files.items()})
    return folder


def test_what_is_read(tmp_path: Path) -> None:
    found = read_checkout(checkout(tmp_path))
    assert found.release == Version("1.8.4")
    assert found.tests == (
        "tests/realtime/test_deep.py",
        "tests/test_realtime_things.py",
        "tests/test_session.py",
    )
    assert found.requirements == (
        "livekit-plugins-other==1.8.4",
        "livekit-plugins-some-voice==1.8.4",
        "livekit-plugins-third==1.8.4",
        "pytest>=8",
        "numpy",
    )


def test_older_places_of_what_tests_need(tmp_path: Path) -> None:
    pyproject = '[tool.uv]\ndev-dependencies = ["pytest<9"]\n'
    found = read_checkout(checkout(tmp_path, pyproject=pyproject))
    assert found.requirements[-1] == "pytest<9"


def test_nothing_is_written(tmp_path: Path) -> None:
    checkout(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    read_checkout(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("name", ["missing", "a file"])
def test_no_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    with pytest.raises(CtxlockError, match=f"{name} is no folder; name a checkout"):
        read_checkout(tmp_path / name)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"version": None}, "is no checkout of livekit/agents: livekit-", id="other"),
        pytest.param({"version": "x = 1\n"}, "version.py names no release: a line such", id="none"),
        pytest.param({"version": "__version__ = x\n"}, "names no release", id="not written out"),
        pytest.param({"version": "( no\n"}, "version.py could not be read", id="no Python"),
        pytest.param({"version": '__version__ = "a"\n'}, "is 'a', which is no release", id="bad"),
        pytest.param({"version": '__version__ = "0.12.1"\n'}, "0.12.1 is too old", id="too old"),
        pytest.param(
            {"test_realtime_things": None, "test_session": None, "test_deep": None},
            "has no realtime tests",
            id="no tests",
        ),
        pytest.param({"pyproject": None}, "does not say what the tests need", id="no pyproject"),
        pytest.param({"pyproject": "="}, "does not say what the tests need", id="no TOML"),
        pytest.param(
            {"pyproject": '[dependency-groups]\ndev = [{include-group = "x"}]\n'},
            "does not say what the tests need",
            id="no such group",
        ),
        pytest.param(
            {"pyproject": "[dependency-groups]\ndev = ['p y']\n"},
            "does not say what the tests need",
            id="no requirement",
        ),
    ],
)
def test_what_is_refused(changes: dict[str, str | None], said: str, tmp_path: Path) -> None:
    checkout(tmp_path, **changes)
    with pytest.raises(CtxlockError) as caught:
        read_checkout(tmp_path)
    assert said in str(caught.value)
    assert str(tmp_path) in str(caught.value) or "too old" in said
