"""Cases of projects that name livekit-agents in their pyproject.toml: uv's, Poetry's and PDM's."""

from __future__ import annotations

from functools import partial
from typing import Any

from installer_bench import OLDER, OLDER_PATCHED, Case

from ctxlock.verified import NEWEST

__all__ = ["EVERY_PROJECT", "PROJECT_CASES"]

EVERY_PROJECT = """\
[project]
name = "agent"
version = "0"
requires-python = ">=3.10,<3.15"
"""
"""How the pyproject.toml of each project begins."""

FILE = "livekit-agents @ file:///${PROJECT_ROOT}/livekit-agents"
PLUGIN = f"livekit-plugins-openai=={NEWEST}"

UV = "[tool.uv.sources]\nlivekit-agents = {{ {} }}\n".format
UV_TREE = UV('path = "livekit-agents"')
UV_GIT = UV('git = "GIT", subdirectory = "livekit-agents"')
UV_SETTING = f"""{UV_TREE}
[tool.uv.config-settings-package]
livekit-agents = {{ upstream = "{OLDER}" }}
"""
UV_INDEX = f"""\
[[tool.uv.index]]
name = "patched"
url = "OVERLAY"
explicit = true

{UV('index = "patched"')}"""

POETRY = """\
[tool.poetry]
package-mode = false

[[tool.poetry.source]]
name = "stock"
url = "STOCK"

"""
POETRY_WANTS = "[tool.poetry.dependencies]\nlivekit-agents = {{ {} }}\n".format
POETRY_TREE = POETRY + POETRY_WANTS('path = "livekit-agents"')
POETRY_INDEX = f"""{POETRY}\
[[tool.poetry.source]]
name = "patched"
url = "OVERLAY"
priority = "explicit"

{POETRY_WANTS('source = "patched"')}"""

PDM = "[tool.pdm]\ndistribution = false\n"
PDM_BOTH = PDM + '\n[[tool.pdm.source]]\nname = "pypi"\nurl = "BOTH"\n'


def case(tool: str, tables: str, what: str, typed: str, *wants: str, **more: Any) -> Case:
    """A case of a project: its tables, and its dependencies; the rest is as in `Case`."""
    wanted = ", ".join(f'"{want}"' for want in wants or ["livekit-agents"])
    files = {"pyproject.toml": f"{EVERY_PROJECT}dependencies = [{wanted}]\n\n{tables}"}
    return Case(tool, what, typed, files=files, begin="project", **more)


uv, poetry, pdm = (partial(case, tool) for tool in ("uv", "poetry", "pdm"))

PROJECT_CASES = [
    uv(
        UV_TREE,
        "the tree",
        "uv sync\nuv run --no-sync python -c 'import livekit.agents'\nuv run true",
        quick=True,
    ),
    uv(UV_TREE, "the tree, beside patched wheels", "UV_DEFAULT_INDEX=BOTH uv sync"),
    uv(UV_TREE, "lock first", "uv lock\nuv sync --locked"),
    uv(UV_SETTING, "an older release", "uv sync\nuv run true", gives=OLDER_PATCHED, quick=True),
    uv(
        UV_TREE,
        "an older release on the command line",
        f"uv sync -C upstream={OLDER}",
        gives=OLDER_PATCHED,
    ),
    uv(
        UV_TREE,
        "the same, and then any `uv run`",
        f"uv sync -C upstream={OLDER}\nuv run true",
        note="`uv run` syncs without `-C` and undoes it; write it under "
        "`[tool.uv.config-settings-package]`",
        quick=True,
    ),
    uv(UV_TREE, "extras, and a range", "uv sync\nuv pip check", "livekit-agents[openai]~=1.8"),
    uv(
        UV_TREE,
        "a plugin alone",
        "uv sync",
        PLUGIN,
        gives=NEWEST,
        note="a source applies only to what the project itself names; name `livekit-agents` too",
    ),
    uv(
        UV_TREE,
        "a plugin and livekit-agents",
        "uv sync\nuv pip check",
        *("livekit-agents", PLUGIN),
        quick=True,
    ),
    uv(UV_INDEX, "an explicit index", "uv sync\nuv run true", quick=True),
    uv(UV_GIT, "git", "uv sync"),
    uv(UV_TREE, "upgrade", "uv sync\nuv sync --upgrade"),
    uv(
        UV_TREE,
        "back to stock",
        "uv sync\nsed -i '/^livekit-agents = /d' pyproject.toml\nuv sync",
        gives=NEWEST,
    ),
    poetry(POETRY_TREE, "the tree", "poetry install"),
    poetry(
        POETRY_TREE,
        "an older release",
        f"CTXLOCK_UPSTREAM={OLDER} poetry install",
        gives=OLDER_PATCHED,
    ),
    poetry(
        POETRY_TREE.replace("STOCK", "BOTH"),
        "the tree, beside patched wheels",
        "poetry install",
        fails="is patched already",
        note="its build takes a patched wheel for the stock one, and stops; make that index "
        "`explicit`",
    ),
    poetry(POETRY_INDEX, "an explicit index", "poetry install"),
    pdm(PDM, "the tree", "pdm install", FILE),
    pdm(PDM_BOTH, "the tree, beside patched wheels", "pdm install", FILE),
    pdm(
        PDM, "an older release", f"CTXLOCK_UPSTREAM={OLDER} pdm install", FILE, gives=OLDER_PATCHED
    ),
]
