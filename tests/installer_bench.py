"""What one thing that people do with an installer is, doing it, and judging what came of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from frontends import Frontends
from package_index import make_index, served
from packages import PATCHED
from packaging.version import Version

from ctxlock.buildapi import TREE
from ctxlock.release import overlay_version
from ctxlock.verified import LAST_WITHOUT_LOCK, NEWEST

__all__ = ["OLDER", "OLDER_PATCHED", "PLUGINS", "TOOLS", "Bench", "Case", "check"]

OLDER, OLDER_PATCHED = LAST_WITHOUT_LOCK, str(overlay_version(Version(LAST_WITHOUT_LOCK)))
PLUGINS = "openai,deepgram"
TOOLS = {"poetry": "poetry", "pdm": "pdm[locked]"}
"""The tools that are installed for the cases; PDM 2.29 fails with the newest of what it needs."""

LIMIT = 1800
"""After so many seconds a command is taken to hang."""


@dataclass(frozen=True)
class Case:
    """Something that somebody does.

    Attributes:
        tool: `pip`, `uv`, `poetry` or `pdm`.
        what: What is wanted.
        typed: The commands, one a line, in a folder with a copy of `livekit-agents/`, `wheels`,
            `everything` and an environment `.venv`. docs/installers.md says what stands for what.
        gives: The version that is installed in the end.
        fails: If the last command fails, a part of what it says.
        versions: The versions of the tool.
        files: Files in the folder, by name.
        begin: What is installed at first: "needs" (all that livekit-agents needs), "nothing",
            "stock", or "project", which is nothing, too.
        note: What to know, or to do instead.
        quick: Whether CI runs it, with the last of the versions.
    """

    tool: str
    what: str
    typed: str
    gives: str = PATCHED
    fails: str = ""
    versions: tuple[str, ...] = ("newest",)
    files: Mapping[str, str] = field(default_factory=dict)
    begin: str = "needs"
    note: str = ""
    quick: bool = False

    @property
    def title(self) -> str:
        """What is wanted, and what it begins with."""
        forms = {
            "nothing": "{}, into an empty environment",
            "stock": "{} over stock",
            "project": "project: {}",
        }
        return forms.get(self.begin, "{}").format(self.what)


@dataclass
class Bench:
    """The wheels, indexes and tools of the cases.

    Attributes:
        folder: Where they are.
        frontends: Runs commands.
        places: What stands for an index's name in commands and files.
    """

    folder: Path
    frontends: Frontends
    places: dict[str, str] = field(default_factory=dict)

    def prepare(self) -> None:
        """Fetches the releases with all that they need, and builds the patched wheels."""
        fetched, patched, everything = (
            self.folder / n for n in ("fetched", "wheels", "everything")
        )
        download = ("-m", "pip", "download", "-q", "--only-binary", ":all:", "-d", fetched)
        for release, scopes in ((NEWEST, ("lock", "full")), (OLDER, ("lock",))):
            wishes = (f"livekit-agents[{PLUGINS}]=={release}", "libcst>=1.8.2", "packaging>=24")
            self.frontends.succeed(self.frontends.python, *download, *wishes)
            for scope in scopes:
                settings = ("-C", f"upstream={release}", "-C", f"scope={scope}")
                build = ("uv", "build", "-q", "--wheel", TREE, "-o", patched)
                self.frontends.succeed(*build, *settings)
        stock, overlays = sorted(fetched.glob("*.whl")), sorted(patched.glob("*.whl"))
        everything.mkdir()
        for wheel in (*stock, *overlays):
            (everything / wheel.name).symlink_to(wheel)
        releases = [wheel for wheel in stock if wheel.name.startswith("livekit_agents-")]
        indexes = {"stock": releases, "overlay": overlays[-1:], "both": releases + overlays}
        for name, wheels in indexes.items():
            make_index(self.folder / "indexes" / name, wheels)

    @contextmanager
    def served(self) -> Iterator[Bench]:
        """Serves the indexes, and makes the repository."""
        beyond = self._users_index()
        self.places["GIT"] = self.frontends.repository().as_uri()
        with served(self.folder / "indexes", {"stock": beyond, "both": beyond}) as address:
            for name in ("stock", "overlay", "both"):
                self.places[name.upper()] = f"{address}/{name}/"
            yield self

    def tool(self, name: str) -> Path:
        """Poetry or PDM, in an environment of its own."""
        folder = self.folder / name
        if not folder.exists():
            python = self.frontends.environment(TOOLS[name], folder=folder / "environment")
            (folder / name).symlink_to(python.with_name(name))
        return folder / name

    def run(self, case: Case, version: str, folder: Path) -> None:
        """Does a case with a version of its tool in an empty folder; fails as `check` does."""
        shutil.copytree(TREE, folder / TREE.name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("wheels", "everything"):
            (folder / name).symlink_to(self.folder / name)
        wishes = []
        if case.tool in TOOLS:
            self.tool(case.tool)
        if case.tool == "pip":
            wishes.append("pip" if version == "newest" else f"pip=={version}")
        if case.begin in ("needs", "stock"):
            wishes.append(f"livekit-agents[openai]=={NEWEST}")
        python = self.frontends.environment(*wishes, folder=folder / ".venv")
        if case.begin == "needs":
            uninstall = ("uv", "pip", "uninstall", "-q", "-p", python)
            self.frontends.succeed(*uninstall, "livekit-agents", "livekit-plugins-openai")
        check(case, folder, self._variables(case, folder), self.places)

    def _variables(self, case: Case, folder: Path) -> dict[str, str]:
        """An environment that knows no index but ours, and no settings of this machine's user."""
        private = ("PIP_", "UV_", "UV", "POETRY_", "PDM_", "XDG_", "VIRTUAL_ENV", "CTXLOCK_")
        kept = {k: v for k, v in os.environ.items() if k == "PIP_CERT" or not k.startswith(private)}
        home, stock = self.folder / "home", self.places["STOCK"]
        path = (folder / ".venv/bin", self.folder / case.tool, Path(sys.executable).parent)
        kinds = ("CACHE", "CONFIG", "DATA", "STATE")
        return {
            **kept,
            **{f"XDG_{kind}_HOME": str(home / kind) for kind in kinds},
            "XDG_CONFIG_DIRS": str(home),
            "PATH": os.pathsep.join([*map(str, path), os.environ["PATH"]]),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": stock,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "UV_DEFAULT_INDEX": stock,
            "UV_CACHE_DIR": str(home / "uv"),
            "PDM_PYPI_URL": stock,
            "PDM_CHECK_UPDATE": "0",
            "POETRY_VIRTUALENVS_IN_PROJECT": "true",
            "POETRY_NO_INTERACTION": "1",
            "NO_COLOR": "1",
        }

    def _users_index(self) -> str:
        """The index that pip has been told to use, or else its own."""
        code = "import pip._internal.models.index as i; print(i.PyPI.simple_url)"
        for command in (["-m", "pip", "config", "get", "global.index-url"], ["-c", code]):
            done = self.frontends.run(self.frontends.python, *command)
            if done.returncode == 0:
                break
        return os.environ.get("PIP_INDEX_URL") or done.stdout.strip()


def check(
    case: Case, folder: Path, environment: Mapping[str, str], places: Mapping[str, str]
) -> None:
    """Types the commands of `case` in `folder`, and looks at the environment that they leave.

    Args:
        case: What is done.
        folder: Where; it holds a `.venv`.
        environment: The environment's variables.
        places: What stands for an index's name in commands and files.

    Raises:
        AssertionError: Something else came of it than `case` says.
    """

    def at(text: str) -> str:
        for name, place in places.items():
            text = text.replace(name, place)
        return text

    for name, text in case.files.items():
        (folder / name).write_text(at(text), encoding="utf-8")
    said, lines = "", case.typed.splitlines()
    for number, line in enumerate(lines, 1):
        done = subprocess.run(
            ["bash", "-c", at(line)],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
        )
        said += f"$ {line}\n{done.stdout}"
        fails = bool(case.fails) and number == len(lines)
        assert fails == (done.returncode != 0), f"exit code {done.returncode}:\n{said}"
    if case.fails:
        # the tool wraps and frames its words
        words = " ".join(word for word in done.stdout.split() if word.strip("│╰─▶"))
        assert case.fails in words, f"not {case.fails!r}:\n{said}"
    else:
        version, bare = _installed(folder / ".venv/bin/python")
        assert version == case.gives, f"{version} instead of {case.gives}:\n{said}"
        # what is called patched must be patched, and what is called stock bare
        assert ("+" in version) == (bare == 0), f"{version} with {bare} bare:\n{said}"


def _installed(python: Path) -> tuple[str, int]:
    """The version that an environment has, and how many of its sites are bare."""
    audit = [sys.executable, "-m", "ctxlock", "audit", "--json", "--python", str(python)]
    done = subprocess.run(audit, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    return found["livekit_agents"], found["bare"]
