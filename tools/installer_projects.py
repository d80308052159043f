"""Cases of projects that name livekit-agents in their pyproject.toml: uv's, Poetry's and PDM's."""

from __future__ import annotations

from functools import partial

from installer_case import NEWEST, OLDER, OLDER_PATCHED, PATCHED, Case

__all__ = ["PROJECT_CASES"]


def project(tables: str = "", *wants: str) -> dict[str, str]:
    """A project with further tables in its pyproject.toml."""
    wanted = ", ".join(f'"{want}"' for want in wants or ["livekit-agents"])
    return {
        "pyproject.toml": f"""\
[project]
name = "agent"
version = "0"
requires-python = ">=3.10,<3.15"
dependencies = [{wanted}]

{tables}"""
    }


TREE = '[tool.uv.sources]\nlivekit-agents = { path = "livekit-agents" }\n'
SETTING = f"""
[tool.uv.config-settings-package]
livekit-agents = {{ upstream = "{OLDER}" }}
"""
EXPLICIT = """\
[[tool.uv.index]]
name = "patched"
url = "OVERLAY"
explicit = true

[tool.uv.sources]
livekit-agents = { index = "patched" }
"""
POETRY = """\
[tool.poetry]
package-mode = false

[[tool.poetry.source]]
name = "stock"
url = "STOCK"
"""
POETRY_TREE = (
    POETRY
    + """
[tool.poetry.dependencies]
livekit-agents = { path = "livekit-agents" }
"""
)
POETRY_BESIDE = POETRY_TREE.replace("STOCK", "BOTH")
POETRY_INDEX = (
    POETRY
    + """
[[tool.poetry.source]]
name = "patched"
url = "OVERLAY"
priority = "explicit"

[tool.poetry.dependencies]
livekit-agents = { source = "patched" }
"""
)
PDM = "[tool.pdm]\ndistribution = false\n"
PDM_BESIDE = PDM + '\n[[tool.pdm.source]]\nname = "pypi"\nurl = "BOTH"\n'
FILE = "livekit-agents @ file:///${PROJECT_ROOT}/livekit-agents"

uv = partial(Case, "uv", begin="nothing")
poetry = partial(Case, "poetry", begin="nothing")
pdm = partial(Case, "pdm", begin="nothing")

PROJECT_CASES = [
    uv(
        "project: the tree",
        "uv sync\nuv run --no-sync python -c 'import livekit.agents'\nuv run true",
        PATCHED,
        files=project(TREE),
        quick=True,
    ),
    uv(
        "project: the tree, beside patched wheels",
        "UV_DEFAULT_INDEX=BOTH uv sync",
        PATCHED,
        files=project(TREE),
    ),
    uv("project: lock first", "uv lock\nuv sync --locked", PATCHED, files=project(TREE)),
    uv(
        "project: an older release",
        "uv sync\nuv run true",
        OLDER_PATCHED,
        files=project(TREE + SETTING),
        quick=True,
    ),
    uv(
        "project: an older release on the command line",
        f"uv sync -C upstream={OLDER}",
        OLDER_PATCHED,
        files=project(TREE),
    ),
    uv(
        "project: the same, and then any `uv run`",
        f"uv sync -C upstream={OLDER}\nuv run true",
        PATCHED,
        files=project(TREE),
        note="`uv run` syncs without `-C` and undoes it; write it under "
        "`[tool.uv.config-settings-package]`",
        quick=True,
    ),
    uv(
        "project: extras, and a range",
        "uv sync\nuv pip check",
        PATCHED,
        files=project(TREE, "livekit-agents[openai]~=1.8"),
    ),
    uv(
        "project: a plugin alone",
        "uv sync",
        NEWEST,
        files=project(TREE, f"livekit-plugins-openai=={NEWEST}"),
        note="a source applies only to what the project itself names; name `livekit-agents` too",
    ),
    uv(
        "project: a plugin and livekit-agents",
        "uv sync\nuv pip check",
        PATCHED,
        files=project(TREE, "livekit-agents", f"livekit-plugins-openai=={NEWEST}"),
        quick=True,
    ),
    uv(
        "project: an explicit index",
        "uv sync\nuv run true",
        PATCHED,
        files=project(EXPLICIT),
        quick=True,
    ),
    uv(
        "project: git",
        "uv sync",
        PATCHED,
        files=project(
            '[tool.uv.sources]\nlivekit-agents = { git = "GIT", subdirectory = "livekit-agents" }\n'
        ),
    ),
    uv("project: upgrade", "uv sync\nuv sync --upgrade", PATCHED, files=project(TREE)),
    uv(
        "project: back to stock",
        "uv sync\nsed -i '/^livekit-agents = /d' pyproject.toml\nuv sync",
        NEWEST,
        files=project(TREE),
    ),
    poetry("project: the tree", "poetry install", PATCHED, files=project(POETRY_TREE)),
    poetry(
        "project: an older release",
        f"CTXLOCK_UPSTREAM={OLDER} poetry install",
        OLDER_PATCHED,
        files=project(POETRY_TREE),
    ),
    poetry(
        "project: the tree, beside patched wheels",
        "poetry install",
        "is patched already",
        fails=True,
        files=project(POETRY_BESIDE),
        note="its build takes a patched wheel for the stock one, and stops; make that index "
        "`explicit`",
    ),
    poetry("project: an explicit index", "poetry install", PATCHED, files=project(POETRY_INDEX)),
    pdm("project: the tree", "pdm install", PATCHED, files=project(PDM, FILE)),
    pdm(
        "project: the tree, beside patched wheels",
        "pdm install",
        PATCHED,
        files=project(PDM_BESIDE, FILE),
    ),
    pdm(
        "project: an older release",
        f"CTXLOCK_UPSTREAM={OLDER} pdm install",
        OLDER_PATCHED,
        files=project(PDM, FILE),
    ),
]
