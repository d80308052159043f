"""Does with installers what people do, on a loopback index, and says what came of each.

``python tools/installers.py`` runs every case and writes `docs/installers.md`; ``--quick`` runs
those that CI runs, and writes nothing; ``--only TEXT`` runs those whose text holds it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from installer_case import NEWEST, OLDER, PLUGINS, Case, Outcome, run_case
from installer_cases import CASES
from installer_page import Row, render, table
from package_index import make_index, served
from rich.console import Console

from ctxlock.buildapi import TREE

PAGE = Path("docs/installers.md")
OUTSIDE = ("poetry", "pdm[locked]")  # PDM 2.29 does not start with the newest of what it needs


@dataclass
class Bench:
    """The tools, the wheels and the indexes, in a temporary folder."""

    folder: Path
    uv: str = field(default_factory=lambda: os.environ.get("UV") or shutil.which("uv") or "uv")
    places: dict[str, str] = field(default_factory=dict)

    def prepare(self) -> None:
        """Fetches the releases with all that they need, and builds the patched wheels."""
        fetched, patched = self.folder / "fetched", self.folder / "wheels"
        python = self.environment(self.folder / "fetching", "pip")
        for release, scopes in ((NEWEST, ("lock", "full")), (OLDER, ("lock",))):
            download = (python, "-m", "pip", "download", "-q", "--only-binary", ":all:")
            wishes = (f"livekit-agents[{PLUGINS}]=={release}", "libcst>=1.8.2", "packaging>=24")
            self._call(*download, "-d", fetched, *wishes)
            build = (self.uv, "build", "-q", "--wheel", TREE, "-o", patched)
            for scope in scopes:
                self._call(*build, "-C", f"upstream={release}", "-C", f"scope={scope}")
        stock, overlays = sorted(fetched.glob("*.whl")), sorted(patched.glob("*.whl"))
        releases = [wheel for wheel in stock if wheel.name.startswith("livekit_agents-")]
        (self.folder / "everything").mkdir()
        for wheel in (*stock, *overlays):
            (self.folder / "everything" / wheel.name).symlink_to(wheel)
        for name, wheels in (
            ("stock", releases),
            ("overlay", overlays[-1:]),
            ("both", releases + overlays),
        ):
            make_index(self.folder / "indexes" / name, wheels)
        self._outside_tools()
        repository = self.folder / "repository"
        _copy_tree(repository / TREE.name)
        git = ("git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@localhost")
        for command in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "Everything")):
            self._call(*git, *command)
        self.places["GIT"] = repository.as_uri()

    def users_index(self) -> str:
        """The index that pip has been told to use, or else its own."""
        python = self.folder / "fetching/bin/python"
        code = "import pip._internal.models.index as i; print(i.PyPI.simple_url)"
        for command in (["-m", "pip", "config", "get", "global.index-url"], ["-c", code]):
            done = subprocess.run([str(python), *command], capture_output=True, text=True)
            if done.returncode == 0:
                break
        return os.environ.get("PIP_INDEX_URL") or done.stdout.strip()

    def environment(self, folder: Path, *wishes: str) -> Path:
        """Makes an environment with `wishes`; returns its interpreter."""
        self._call(self.uv, "venv", "-q", "-p", sys.executable, folder)
        python = folder / "bin/python"
        if wishes:
            self._call(self.uv, "pip", "install", "-q", "-p", python, *wishes)
        return python

    def row(self, case: Case, version: str) -> Row:
        """Runs a case with a version of its tool."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            outcome = self.run(case, version, Path(folder))
        return Row(case, self.version(case.tool, version), outcome)

    def run(self, case: Case, version: str, folder: Path) -> Outcome:
        """Runs a case with a version of its tool in a new folder."""
        _copy_tree(folder / TREE.name)
        for name in ("wheels", "everything"):
            (folder / name).symlink_to(self.folder / name)
        wishes = [f"pip{_exactly(version)}"] if case.tool == "pip" else []
        if case.begin != "nothing":
            release = NEWEST if case.begin == "needs" else case.begin
            wishes.append(f"livekit-agents[{PLUGINS.partition(',')[0]}]=={release}")
        python = self.environment(folder / ".venv", *wishes)
        if case.begin == "needs":
            uninstall = (self.uv, "pip", "uninstall", "-q", "-p", python)
            self._call(*uninstall, "livekit-agents", "livekit-plugins-openai")
        return run_case(case, folder, self._variables(folder), self.places)

    def version(self, tool: str, wished: str) -> str:
        """The number of the version of a tool that was run."""
        if tool == "pip" and wished != "newest":
            return wished
        exe = str(self.folder / ("fetching/bin/pip" if tool == "pip" else f"tools/bin/{tool}"))
        said = subprocess.run([exe, "--version"], capture_output=True, text=True, check=True).stdout
        return next(word for word in said.replace(")", " ").split() if word[0].isdigit())

    def _outside_tools(self) -> None:
        """Installs Poetry and PDM, each into an environment of its own."""
        bin = self.folder / "tools" / "bin"
        bin.mkdir(parents=True)
        (bin / "uv").symlink_to(self.uv)
        for wish in OUTSIDE:
            name = wish.partition("[")[0]
            python = self.environment(self.folder / "tools" / name, wish)
            (bin / name).symlink_to(python.with_name(name))

    def _variables(self, folder: Path) -> dict[str, str]:
        """An environment that knows no index but ours, and no settings of this machine's user."""
        private = ("PIP_", "UV_", "UV", "POETRY_", "PDM_", "XDG_", "VIRTUAL_ENV", "CTXLOCK_")
        kept = {k: v for k, v in os.environ.items() if k == "PIP_CERT" or not k.startswith(private)}
        ours = {f"XDG_{name}_HOME": str(self.folder / "home" / name) for name in _XDG}
        stock = self.places["STOCK"]
        path = [folder / ".venv/bin", self.folder / "tools/bin", Path(sys.executable).parent]
        return {
            **kept,
            **ours,
            "XDG_CONFIG_DIRS": str(self.folder / "home"),
            "PATH": os.pathsep.join([*map(str, path), os.environ["PATH"]]),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": stock,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "UV_DEFAULT_INDEX": stock,
            "UV_CACHE_DIR": str(self.folder / "home/uv"),
            "PDM_PYPI_URL": stock,
            "PDM_CHECK_UPDATE": "0",
            "POETRY_VIRTUALENVS_IN_PROJECT": "true",
            "POETRY_NO_INTERACTION": "1",
            "NO_COLOR": "1",
        }

    @staticmethod
    def _call(*command: str | Path) -> None:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")


_XDG = ("CACHE", "CONFIG", "DATA", "STATE")


@contextmanager
def bench() -> Iterator[Bench]:
    """A bench that is ready, with its index served."""
    with tempfile.TemporaryDirectory(prefix="ctxlock-installers-") as scratch:
        made = Bench(Path(scratch).resolve())
        made.prepare()
        beyond = made.users_index()
        with served(made.folder / "indexes", {"stock": beyond, "both": beyond}) as address:
            for name in ("stock", "overlay", "both"):
                made.places[name.upper()] = f"{address}/{name}/"
            yield made


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases; returns 1 if one of them gave what its table does not say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="run what CI runs; write nothing")
    parser.add_argument("--only", default="", help="run the cases that hold this text; write none")
    parser.add_argument("--jobs", type=int, default=2, help="how many cases run at a time")
    wanted = parser.parse_args(arguments)
    cases = [case for case in CASES if case.quick or not wanted.quick]
    cases = [case for case in cases if wanted.only in f"{case.tool}: {case.what} {case.commands}"]
    runs = [
        (case, version)
        for case in cases
        for version in (case.versions[-1:] if wanted.quick else case.versions)
    ]
    rows: list[Row] = []
    console = Console()
    with bench() as ours, ThreadPoolExecutor(wanted.jobs) as pool:
        for row in pool.map(lambda run: ours.row(*run), runs):
            rows.append(row)
            told = f"{row.case.tool} {row.version}: {row.case.what}: {row.outcome.result}"
            console.print(told, highlight=False, markup=False, soft_wrap=True)
            if not row.outcome.expected:
                console.print(f"{row.outcome.said}expected: {row.case.gives}", markup=False)
    console.print(table(rows))
    wrong = sum(not row.outcome.expected for row in rows)
    console.print(f"{len(rows)} runs, {wrong} other than expected.", highlight=False)
    if not (wrong or wanted.quick or wanted.only):
        PAGE.write_text(render(rows), encoding="utf-8")
    return 1 if wrong else 0


def _copy_tree(folder: Path) -> None:
    shutil.copytree(TREE, folder, ignore=shutil.ignore_patterns("__pycache__"))


def _exactly(version: str) -> str:
    return "" if version == "newest" else f"=={version}"


if __name__ == "__main__":
    sys.exit(main())
