"""The project's checks; `uv run nox --list` names them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import nox
import tomlkit
from packaging.version import Version

from ctxlock.verified import LAST_WITHOUT_LOCK, NEWEST, VERIFIED

sys.path.append(str(Path(__file__).parent))  # nox itself does not
from lab.interpreters import find_python

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "none"

PYTHONS = ("3.10", "3.13")
RECENT = [*dict.fromkeys((LAST_WITHOUT_LOCK, NEWEST))]
CI = {
    **{"lint": 1, "types": 1, "patched_types": 1, "network": 16, "explore": 3, "matrix": 11},
    **{f"pythons({PYTHONS[0]})": 4, "long_calls": 1, "providers": 4, "sequential": 4},
    f"full({NEWEST})": 6,
    **{f"minors({release})": 4 for release in (next(iter(VERIFIED)), *RECENT)},
}
"""What runs without a name, in this order, and how many minutes each takes on two cores."""
nox.options.sessions = ["plan", *CI]

TEST_TOOLS = ("hypothesis", "pytest", "pytest-asyncio", "pytest-xdist")
REALTIME = sorted(str(path) for path in Path("tests").glob("test_*realtime*.py"))
DOCTOR = sorted(str(path) for path in Path("tests").glob("test_doctor_runs*.py"))
REPEAT = os.environ.get("CTXLOCK_REPEAT", "1")
"""How often each regression is run on another release or scope; CI repeats those of the suite."""


@nox.session
def plan(session: nox.Session) -> None:
    """What runs without a name, and how long each takes; this runs nothing itself."""
    for name, minutes in CI.items():
        session.log(f"{minutes:3} min  {name}")
    session.log(f"{sum(CI.values()):3} min  in all")


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff's rules and its format."""
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Strict mypy on this project's own code."""
    session.run("mypy")


@nox.session
def patched_types(session: nox.Session) -> None:
    """Strict mypy on the patched module, with the flags that stock passes."""
    strict_types(session, sys.executable, "agent_activity")


@nox.session
@nox.parametrize("release", [nox.param(release, id=release) for release in VERIFIED])
def full(session: nox.Session, release: str) -> None:
    """The scope full: the regressions, and on the two of `explore` its types and schedules."""
    python = stock_environment(session, release)
    patch(session, python, release, "-C", "scope=full")
    if release not in RECENT:
        return
    strict_types(session, python, "agent_activity", "_realtime_context")
    explore = ("ctxlock", "explore", "--scope", "full", "--upstream", release)
    session.run(*explore)
    session.run(*explore, "--integrity")


@nox.session
def network(session: nox.Session) -> None:
    """The tests that ask a package index: builds, some installers, older releases; no others."""
    session.run("pytest", "-m", "network and not installers", *session.posargs)


@nox.session
def explore(session: nox.Session) -> None:
    """Every schedule: of pairs on stock, which is violated, and on patched; of triples there.

    The releases are the newest one, and the last without a lock of upstream's own.
    """
    for release in RECENT:
        command = ("ctxlock", "explore", *session.posargs)
        session.run(*command, "--stock", release, success_codes=[1])
        session.run(*command, "--upstream", release)
    session.run("ctxlock", "explore", "--depth", "3", *session.posargs)


@nox.session
def matrix(session: nox.Session) -> None:
    """Leave each site bare, and try each wrong fix: what catches it?"""
    session.run("python", "tools/matrix.py")


@nox.session
@nox.parametrize("release", [nox.param(release, id=release) for release in VERIFIED])
def minors(session: nox.Session, release: str) -> None:
    """The regressions on a release, as published, where the right ones fail, and patched.

    Patched, the newest one is what `uv run pytest` runs on.
    """
    python = stock_environment(session, release)
    regressions(session, python, release, *DOCTOR)
    if release == NEWEST:
        return session.log("patched, it is what the whole suite runs on")
    patch(session, python, release)


@nox.session(default=False)
def module_mutants(session: nox.Session) -> None:
    """Change one thing in the added module at a time: what notices? `-- --only TEXT`."""
    session.run("python", "tools/module_mutants.py", *session.posargs)


@nox.session
@nox.parametrize("minor", [nox.param(minor, id=minor) for minor in PYTHONS])
def pythons(session: nox.Session, minor: str) -> None:
    """The suite on another Python, where that is installed; without what asks an index."""
    python = find_python(minor)
    if python is None:
        session.skip(f"Python {minor} is not installed")
    if minor == "{}.{}".format(*sys.version_info):
        session.skip(f"`uv run pytest` runs on Python {minor}")
    session.run(
        *("uv", "run", "--python", python, "pytest", *session.posargs),
        env={
            "UV_PROJECT_ENVIRONMENT": str(Path(session.create_tmp(), "environment").resolve()),
            "VIRTUAL_ENV": None,  # this session's own, which uv would warn of
        },
    )


@nox.session
def providers(session: nox.Session) -> None:
    """Every provider's plugin on stock and patched; `-- --delay 30 --release 1.7.1`, say."""
    scratch = str(Path(session.create_tmp()).resolve())
    session.run("python", "-m", "lab", "--scratch", scratch, *session.posargs)
    session.run("python", "-m", "lab.worse", "--scratch", scratch)


@nox.session
def sequential(session: nox.Session) -> None:
    """Foreign models, and scripts in which nothing overlaps, on stock and patched: all the same?

    `-- --seeds 1000` goes through more scripts; `-- --seed 7 --length 3` replays one.
    """
    scratch = str(Path(session.create_tmp()).resolve())
    sequences = ("python", "-m", "lab.sequences", "--scratch", scratch)
    if session.posargs:
        session.run(*sequences, *session.posargs)
        return
    session.run("python", "-m", "lab.foreign", "--scratch", scratch)
    session.run(*sequences)
    before = ("--release", LAST_WITHOUT_LOCK, "--scope", "lock")
    session.run("python", "-m", "lab.foreign", "--scratch", scratch, *before)
    session.run(*sequences, *before)


@nox.session(default=False)
@nox.parametrize("release", [nox.param(release, id=release) for release in VERIFIED])
def doctor(session: nox.Session, release: str) -> None:
    """What `ctxlock doctor` finds, and what it accuses wrongly: stock, and the newest patched.

    The tables of docs/doctor.md are made of what it leaves in the session's folder.
    """
    if Version(release) < Version("1.6.10"):
        session.skip("its engine was not tried with the scripted server")
    python = stock_environment(session, release)
    measure_doctor(session, python, "stock")
    for scope in ("lock", "full") if release == NEWEST else ():
        folder = Path(session.create_tmp(), scope).resolve()
        wheel = build_wheel(session, release, folder, "-C", f"scope={scope}")
        install(session, python, "--no-deps", "--reinstall", str(wheel))
        measure_doctor(session, python, scope)


@nox.session(default=False)
def provider_page(session: nox.Session) -> None:
    """The page of docs/ about the providers: two releases, three delays each.

    The scope full is run on the newest release without a delay, where what differs is written down.
    """
    scratch = Path(session.create_tmp()).resolve()
    reports = []
    for release in (NEWEST, "1.7.1"):
        for delay in ("0", "1", "30"):
            reports.append(str(scratch / f"{release}-{delay}.json"))
            with open(reports[-1], "w", encoding="utf-8") as report:
                session.run(
                    *("python", "-m", "lab", "--json", "--scratch", str(scratch)),
                    *("--release", release, "--delay", delay),
                    *(() if (release, delay) == (NEWEST, "0") else ("--scope", "lock")),
                    stdout=report,
                    stderr=sys.stderr,  # else nox puts the progress into the report
                    success_codes=[0, 1],
                )
    with open(scratch / "providers.md", "w", encoding="utf-8") as page:
        session.run("python", "-m", "lab.page", *reports, stdout=page, stderr=sys.stderr)
    shutil.copyfile(scratch / "providers.md", "docs/providers.md")


@nox.session(default=False)
def releases(session: nox.Session) -> None:
    """Patch every release and write the table of docs/; releases may be named, `--check` too."""
    session.run("python", "tools/sweep.py", *session.posargs)


@nox.session(default=False)
def installers(session: nox.Session) -> None:
    """All that people do with installers; `-- -k TEXT` chooses."""
    session.run("pytest", "-m", "network", "tests/test_installers.py", *session.posargs)


@nox.session(default=False)
@nox.parametrize(
    ("release", "scope"),
    [
        nox.param(release, scope, id=release if scope == "lock" else f"{release}-{scope}")
        for scope in ("lock", "full")
        for release in RECENT
    ],
)
def benchmarks(session: nox.Session, release: str, scope: str) -> None:
    """What the patch costs: stock and patched in turns, as ratios."""
    scratch = Path(session.create_tmp()).resolve()
    wheel = build_wheel(session, release, scratch / "wheels", "-C", f"scope={scope}")
    pythons = []
    for name, wish in (("stock", f"livekit-agents=={release}"), ("patched", str(wheel))):
        python = make_environment(session, scratch / name, sys.executable)
        install(session, python, "--compile-bytecode", wish)
        pythons.append(python)
    given = ("--release", release, "--scope", scope)
    session.run("python", "benchmarks/compare.py", *pythons, *given, *session.posargs)


@nox.session
def long_calls(session: nox.Session) -> None:
    """What an update, a told item and a turn cost in long calls, counted, against stock."""
    release, scratch = NEWEST, Path(session.create_tmp()).resolve()
    wishes = {"stock": f"livekit-agents=={release}"}
    for scope in ("lock", "full"):
        wheels = scratch / f"{scope} wheels"
        wishes[scope] = str(build_wheel(session, release, wheels, "-C", f"scope={scope}"))
    pythons = {}
    for name, wish in wishes.items():
        pythons[name] = make_environment(session, scratch / name, sys.executable)
        install(session, pythons[name], wish)
    patched = [f"{scope}={pythons[scope]}" for scope in ("lock", "full")]
    session.run("python", "benchmarks/counts.py", pythons["stock"], *patched)


@nox.session(default=False)
def fuzz(session: nox.Session) -> None:
    """Ten times as many edits of real methods as the tests make."""
    session.run(
        *("pytest", "-m", "", "tests/test_rewrite_fuzz_releases.py", "tests/test_closed_world.py"),
        *session.posargs,
        env={"CTXLOCK_FUZZ": os.environ.get("CTXLOCK_FUZZ", "2000")},
    )


@nox.session(default=False)
def upstream_tests(session: nox.Session) -> None:
    """The realtime tests of a checkout of livekit/agents, on stock and patched; `-- PATH`."""
    session.run("python", "tools/upstream_tests.py", *session.posargs)


@nox.session(default=False)
def pin(session: nox.Session) -> None:
    """Pin the newest development closure in pyproject.toml, without an index's addresses.

    `-- NAME` moves that package, and of the rest what has to move with it.
    """
    pyproject = Path("pyproject.toml")
    before = pyproject.read_text(encoding="utf-8")
    document = tomlkit.parse(before)
    moved = [f"--upgrade-package={name}" for name in session.posargs] or ["--upgrade"]

    def write(pins: Sequence[str]) -> None:
        document["dependency-groups"]["pins"] = tomlkit.item(pins).multiline(True)
        pyproject.write_text(tomlkit.dumps(document), encoding="utf-8")

    try:
        write([])
        session.run("uv", "lock", *moved)
        exported = session.run(
            *("uv", "export", "--all-groups", "--no-hashes", "--no-annotate", "--no-header"),
            *("--no-emit-project", "--no-emit-package", "livekit-agents"),
            silent=True,
        )
        write([line for line in str(exported).splitlines() if "==" in line])
        session.run("uv", "lock")
    except BaseException:
        pyproject.write_text(before, encoding="utf-8")
        raise


@nox.session(default=False)
def new_release(session: nox.Session) -> None:
    """Support a new release as far as that goes by itself, and say what is left; `-- 1.8.10`."""
    session.run("python", "tools/new_release.py", *session.posargs)


def stock_environment(session: nox.Session, release: str) -> str:
    """An environment with a release as published, its OpenAI plugin and the tests' tools."""
    wanted = VERIFIED[release]
    interpreter = find_python(wanted.python) if wanted.python else sys.executable
    if interpreter is None:
        session.skip(f"Python {wanted.python} is not installed")
    folder = Path(session.create_tmp(), "environment").resolve()
    python = make_environment(session, folder, interpreter)
    newest = [f"--exclude-newer={wanted.exclude_newer}"] if wanted.exclude_newer else []
    both = [f"{name}=={release}" for name in ("livekit-agents", "livekit-plugins-openai")]
    install(session, python, *newest, *both, *TEST_TOOLS)
    return python


def patch(session: nox.Session, python: str, release: str, *settings: str) -> None:
    """Puts the overlay wheel in place of the stock release, and runs the regressions on it."""
    folder = Path(session.create_tmp(), "wheels").resolve()
    wheel = build_wheel(session, release, folder, *settings)
    install(session, python, "--no-deps", "--reinstall", str(wheel))
    session.run("ctxlock", "audit", "--python", python)
    regressions(session, python, wheel.name.split("-")[1])


def measure_doctor(session: nox.Session, python: str, column: str) -> None:
    """Tries the doctor on the livekit-agents of an environment."""
    paths = os.pathsep.join(str(Path(name).resolve()) for name in ("livekit-agents", "tests"))
    target = Path(session.create_tmp(), f"doctor-{column}.json")
    with target.open("w", encoding="utf-8") as out:
        command = (python, "tools/doctor_power.py")
        session.run(*command, stdout=out, stderr=subprocess.DEVNULL, env={"PYTHONPATH": paths})
    session.log(f"measured: {target}")


def make_environment(session: nox.Session, folder: Path, interpreter: str) -> str:
    """A fresh environment; returns its Python."""
    session.run("uv", "venv", "-q", "--clear", "-p", interpreter, str(folder))
    return str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def install(session: nox.Session, python: str, *wishes: str) -> None:
    """Installs for that Python."""
    session.run("uv", "pip", "install", "-q", "-p", python, *wishes)


def strict_types(session: nox.Session, python: str, *modules: str) -> None:
    """Mypy on modules beside the patched one, with the flags that stock passes."""
    session.run(
        *(sys.executable, "-m", "mypy", "--config-file=", "--strict", "--allow-any-generics"),
        # upstream's ignores suit the mypy of its day: stock 1.8.9 has one that 2.4 does not need
        *("--platform", "linux", "--follow-imports", "silent", "--no-warn-unused-ignores"),
        *("--python-executable", python),
        *(part for name in modules for part in ("-m", f"livekit.agents.voice.{name}")),
    )


def build_wheel(session: nox.Session, release: str, folder: Path, *settings: str) -> Path:
    """The overlay wheel of a release, built as a user's installer builds it."""
    shutil.rmtree(folder, ignore_errors=True)
    wish = ("-C", f"upstream={release}", *settings)
    session.run("uv", "build", "-q", "--wheel", "livekit-agents", *wish, "-o", str(folder))
    (wheel,) = folder.glob("*.whl")
    return wheel


def regressions(session: nox.Session, python: str, installed: str, *more: str) -> None:
    """The regressions, and more files of tests, on the livekit-agents of an environment.

    It must be of that version.
    """
    code = "import importlib.metadata, livekit.agents.voice.agent_activity, livekit.plugins.openai"
    code += f"\nassert importlib.metadata.version('livekit-agents') == {installed!r}"
    session.run(python, "-c", code)
    session.run(
        *(python, "-m", "pytest", "-q", "--repeat", REPEAT, *REALTIME, *more, *session.posargs),
        env={"PYTHONPATH": str(Path("livekit-agents").resolve())},
    )
