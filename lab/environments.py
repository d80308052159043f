"""One virtual environment with all plugins, and beside it each livekit-agents under test.

Each livekit-agents, stock too, is unpacked into a folder of its own, which goes first on the module
path: `livekit` is a namespace package, so that the plugins are found behind it. All sides differ in
nothing but that folder.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxlock.target import TARGET
from ctxlock.verified import NEWEST
from lab.interpreters import find_python

__all__ = [
    "NEWEST",
    "REPOSITORY",
    "SCOPES",
    "TARGET",
    "CannotRun",
    "Laboratory",
    "Side",
    "check_sides",
    "prepare",
    "python_of_the_lab",
    "scratch_folder",
]

SCOPES = ("lock", "full")
"""What a patched side can be."""

REPOSITORY = Path(__file__).resolve().parent.parent

MINOR = "3.12"
"""The Python of the environment: Amazon's client wants no older one."""

PATIENCE = 900
"""Real seconds after which a run in a process of its own is given up."""


class CannotRun(Exception):
    """Something that the lab needs is missing, or a run of its own broke."""


@dataclass(frozen=True)
class Side:
    """One livekit-agents.

    Attributes:
        name: ``stock``, or the scope of the patch.
        folder: Where it is unpacked.
        version: What its metadata says.
    """

    name: str
    folder: Path
    version: str


@dataclass(frozen=True)
class Laboratory:
    """An environment, and the sides that run in it.

    Attributes:
        python: Its interpreter.
        sides: All of them, by name.
    """

    python: str
    sides: dict[str, Side]

    def run(self, side: str, module: str, arguments: Sequence[str]) -> Any:
        """Runs a module of the lab on a side, in a process of its own; returns its JSON.

        The module gets ``--folder`` and ``--version``, for `lab.inside.enter`, and
        ``--output``, a file for what it has to say.

        Raises:
            CannotRun: It broke, or did not end.
        """
        chosen = self.sides[side]
        what = f"{module} {' '.join(arguments)}"
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        path = os.pathsep.join([str(chosen.folder), str(REPOSITORY)])
        meant = ("--folder", str(chosen.folder), "--version", chosen.version)
        with tempfile.TemporaryDirectory(prefix="lab-run-") as folder:
            output = Path(folder, "report.json")
            try:
                done = subprocess.run(
                    [self.python, "-m", module, *meant, "--output", str(output), *arguments],
                    # sets of strings in the same order each time
                    env={**kept, "PYTHONPATH": path, "PYTHONHASHSEED": "0"},
                    capture_output=True,
                    text=True,
                    timeout=PATIENCE,
                    cwd=folder,
                )
            except subprocess.TimeoutExpired:
                raise CannotRun(f"{what} did not end within {PATIENCE} s on {side}.") from None
            if done.returncode != 0 or not output.exists():
                last = "\n".join(done.stderr.strip().splitlines()[-12:])
                raise CannotRun(f"{what} could not run on {side}:\n{last}")
            return json.loads(output.read_text(encoding="utf-8"))


@contextmanager
def scratch_folder(kept: Path | None) -> Iterator[Path]:
    """The folder that was asked for, or one that is gone afterwards."""
    if kept is not None:
        yield kept.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="lab-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def python_of_the_lab() -> str:
    """The interpreter that the lab starts from.

    Raises:
        CannotRun: There is none.
    """
    if (python := find_python(MINOR)) is not None:
        return python
    raise CannotRun(
        f"Python {MINOR} is not installed, and the plugins of the lab need it; install it with "
        f"pyenv, or name an interpreter with --python."
    )


def prepare(
    release: str,
    scopes: Iterable[str],
    requirements: Iterable[str],
    scratch: Path,
    *,
    python: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Laboratory:
    """Makes the environment and unpacks each side; what is there already is used again.

    Args:
        release: The livekit-agents release, and that of its plugins.
        scopes: Which patches to build, besides stock.
        requirements: What else to install; what begins with ``livekit-`` in that release.
        scratch: A folder for all of it.
        python: The interpreter to make the environment from.
        say: Told of each part of the work.

    Raises:
        CannotRun: A package or an interpreter is missing.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    wanted = sorted(
        f"{name}=={release}" if name.startswith("livekit-") and "=" not in name else name
        for name in {*requirements}
    )
    interpreter = _environment(release, wanted, scratch, python, say)
    sides = {}
    for name in ("stock", *scopes):
        say(f"unpacking {name}")
        sides[name] = _side(name, release, scratch)
    check_sides(sides, release)
    return Laboratory(interpreter, sides)


def check_sides(sides: Mapping[str, Side], release: str) -> None:
    """Makes sure that each side is what it is called: a stock that is called `lock` would pass.

    Raises:
        CannotRun: It is another release or scope, or its activity is that of another side.
    """
    activities: dict[bytes, str] = {}
    for name, side in sides.items():
        label = "" if name == "stock" else rf"\+ctxlock\.\d+\.{re.escape(name)}"
        if not re.fullmatch(re.escape(release) + label, side.version):
            raise CannotRun(f"{side.folder} holds {side.version}, and {release}, {name} was meant.")
        activity = (side.folder / TARGET).read_bytes()
        if (other := activities.setdefault(activity, name)) != name:
            raise CannotRun(f"{name} has the {TARGET} of {other}: there is nothing to compare.")


def _environment(
    release: str, wanted: list[str], scratch: Path, python: str | None, say: Callable[[str], None]
) -> str:
    folder, made = scratch / f"environment-{release}", scratch / f"environment-{release}.txt"
    interpreter = str(folder / "bin" / "python")
    content = "\n".join(wanted)
    if made.exists() and made.read_text(encoding="utf-8") == content:
        return interpreter
    wanted = [f"livekit-agents=={release}", *wanted]
    say(f"installing {', '.join(wanted)}")
    made.unlink(missing_ok=True)
    _uv("venv", "-q", "--clear", "-p", python or python_of_the_lab(), str(folder))
    try:
        _uv("pip", "install", "-q", "-p", interpreter, *wanted)
    except CannotRun as e:
        raise CannotRun(
            f"livekit-agents {release} cannot be installed with all that the lab needs for it, or "
            f"has no such plugins; name another release, or fewer providers. {e}"
        ) from None
    made.write_text(content, encoding="utf-8")
    return interpreter


def _side(name: str, release: str, scratch: Path) -> Side:
    folder = scratch / f"{name}-{release}"
    shutil.rmtree(folder, ignore_errors=True)
    if name == "stock":
        stock = f"livekit-agents==={release}"
        _uv("pip", "install", "-q", "-p", sys.executable, "--no-deps", "--target", folder, stock)
    else:
        wheels = scratch / f"{name}-{release}-wheel"
        shutil.rmtree(wheels, ignore_errors=True)
        wish = ("-C", f"upstream={release}", "-C", f"scope={name}")
        _uv("build", "-q", "--wheel", REPOSITORY / "livekit-agents", *wish, "-o", wheels)
        (wheel,) = wheels.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    (info,) = folder.glob("livekit_agents-*.dist-info")
    return Side(name, folder, info.name.removeprefix("livekit_agents-").removesuffix(".dist-info"))


def _uv(*arguments: object) -> None:
    uv = shutil.which("uv")
    command = [uv] if uv else [sys.executable, "-m", "uv"]
    if uv is None and importlib.util.find_spec("uv") is None:
        raise CannotRun("uv was not found, and the lab installs with it; install uv.")
    done = subprocess.run(
        [*command, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "UV_LINK_MODE": "copy"},  # a side may be edited by hand
        cwd=REPOSITORY.parent,
    )
    if done.returncode != 0:
        said = " ".join(done.stderr.split())
        raise CannotRun(f"`uv {' '.join(map(str, arguments[:2]))}` failed: {said}")
