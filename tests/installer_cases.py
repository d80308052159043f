"""What people do with pip, uv, Poetry and PDM, and what comes of it."""

from __future__ import annotations

from functools import partial
from typing import Any

from installer_bench import OLDER, OLDER_PATCHED, PLUGINS, Case
from installer_projects import PROJECT_CASES
from packages import FULL, PATCHED

from ctxlock.verified import NEWEST

__all__ = ["CASES", "ON_THE_DAY"]

ON_THE_DAY = {
    "livekit-agents": "1.8.9",
    **{"Python": "3.11.7", "pip": "26.3", "uv": "0.13.9", "Poetry": "2.5.1", "PDM": "2.29.3"},
}
"""What was the newest one when all cases were last run, and the Python that ran them."""

TWO, THREE = ("23.0.1", "newest"), ("23.0.1", "23.2.1", "newest")

RELEASE, WHEEL = f"livekit-agents=={NEWEST}", f"livekit-agents=={PATCHED}"
TREE = "pip install ./livekit-agents"
FORCED = "pip install --force-reinstall --no-deps"
UV_FORCED = "uv pip install --reinstall-package livekit-agents"
NO_INDEX = "pip install --no-index --find-links everything"
CONSTRAINED = "pip install -c constraints.txt"
UPGRADED = f"{TREE} -C upstream={OLDER}\npip install -U livekit-agents"
STOCK_PIN, LOCAL_PIN = {"constraints.txt": RELEASE}, {"constraints.txt": WHEEL}
SETTING = {"requirements.txt": f'./livekit-agents --config-settings "upstream={OLDER}"'}

pip, uv = partial(Case, "pip"), partial(Case, "uv")


def both(what: str, typed: str, uv_typed: str = "", quick: str = "", **more: Any) -> list[Case]:
    """A case of pip's, and the same of uv's, by default with `uv` in front of what is typed.

    `quick` names those that CI runs; `versions` are those of pip. The rest is as in `Case`.
    """
    same = typed.replace("pip install", "uv pip install").replace("pip check", "uv pip check")
    by_uv = {name: value for name, value in more.items() if name != "versions"}
    return [
        pip(what, typed, quick="pip" in quick, **more),
        uv(what, uv_typed or same, quick="uv" in quick, **by_uv),
    ]


CASES = [
    *both("the tree", f"{TREE}\npip check", begin="nothing", quick="pip, uv"),
    *both("the tree", TREE, begin="stock", quick="uv", versions=THREE),
    *both("an older release", f"{TREE} -C upstream={OLDER}", gives=OLDER_PATCHED, quick="uv"),
    pip(
        "an older release",
        f"{TREE} -C upstream={OLDER}",
        fails="no such option: -C",
        versions=("23.0.1",),
        note="spell it as in the next row",
    ),
    pip(
        "an older release, the option in full",
        f"{TREE} --config-settings upstream={OLDER}",
        OLDER_PATCHED,
        versions=TWO,
    ),
    *both(
        "an older release by the variable",
        f"CTXLOCK_UPSTREAM={OLDER} {TREE}",
        gives=OLDER_PATCHED,
        quick="uv",
        versions=TWO,
    ),
    uv(
        "a requirements file",
        "uv pip install -r requirements.txt",
        files={"requirements.txt": "./livekit-agents"},
        quick=True,
    ),
    pip(
        "a requirements file with a setting",
        "pip install -r requirements.txt",
        OLDER_PATCHED,
        versions=("23.2.1", "newest"),
        files=SETTING,
    ),
    pip(
        "a requirements file with a setting",
        "pip install -r requirements.txt",
        fails="no such option: --config-settings",
        versions=("23.0.1",),
        files=SETTING,
        note="set `CTXLOCK_UPSTREAM`, or take the line that `ctxlock build` prints",
    ),
    uv(
        "a requirements file with a setting",
        "uv pip install -r requirements.txt",
        fails="config-settings",
        files=SETTING,
        note="give `-C` on the command line, or the line that `ctxlock build` prints",
    ),
    pip(
        "a patched wheel and a stock constraint",
        f"{CONSTRAINED} wheels/livekit_agents-{PATCHED}-py3-none-any.whl",
        versions=THREE,
        files=STOCK_PIN,
    ),
    *both(
        "the tree and a stock constraint",
        f"{CONSTRAINED} ./livekit-agents",
        versions=THREE,
        files=STOCK_PIN,
    ),
    *both(
        "the tree and a constraint with the local version",
        f"{CONSTRAINED} ./livekit-agents",
        versions=THREE,
        files=LOCAL_PIN,
    ),
    pip(
        "the tree and such a constraint in the environment",
        f"PIP_CONSTRAINT=$PWD/constraints.txt {TREE}",
        files=LOCAL_PIN,
    ),
    pip(
        "the tree and such a constraint in the environment",
        f"PIP_CONSTRAINT=$PWD/constraints.txt {TREE}",
        fails="conflict",
        versions=("23.0.1", "23.2.1"),
        files=LOCAL_PIN,
        note="these apply it to the build, too, which needs stock; give it with `-c`, or "
        "without the local version",
    ),
    *both(
        "extras from the tree",
        f"pip install './livekit-agents[{PLUGINS}]'\npip check",
        quick="uv",
        versions=TWO,
    ),
    *both(
        "a plugin of the same release",
        f"{TREE} livekit-plugins-openai=={NEWEST}\npip check",
        quick="pip",
        versions=TWO,
    ),
    *both(
        "the scope full",
        f"{TREE} --config-settings scope=full",
        f"uv {TREE} -C scope=full",
        gives=FULL,
        versions=TWO,
    ),
    *both("a patched wheel from a folder", f"pip install --find-links wheels {WHEEL}"),
    *both(
        "the release alone, from a folder that has both scopes",
        f"pip install --find-links wheels {RELEASE}",
        note="`lock` sorts after `full`",
        versions=TWO,
    ),
    *both(
        "a patched wheel from an extra index",
        f"pip install --extra-index-url OVERLAY {WHEEL}",
        f"uv pip install --index OVERLAY {WHEEL}",
        quick="uv",
        versions=TWO,
    ),
    uv(
        "another release beside an extra index",
        f"uv pip install --index OVERLAY livekit-agents=={OLDER}",
        fails=f"there is no version of livekit-agents=={OLDER}",
        note="uv asks only the first index that has the name, so OVERLAY hides all "
        "other releases; ask all indexes, as in the next row, or make it `explicit` in a project",
    ),
    uv(
        "the same, asking all",
        "uv pip install --index OVERLAY --index-strategy unsafe-best-match "
        f"livekit-agents=={OLDER}",
        OLDER,
    ),
    *both(
        "the release alone, from an index that has both",
        f"pip install --index-url BOTH {RELEASE}",
        f"uv pip install --default-index BOTH {RELEASE}",
    ),
    *both(
        "the same",
        f"pip install --index-url BOTH {RELEASE}",
        f"uv pip install --default-index BOTH {RELEASE}",
        gives=NEWEST,
        begin="stock",
        note="name the whole version, or reinstall it as in the next row",
        versions=TWO,
    ),
    *both(
        "the same, forced,",
        f"{FORCED} --index-url BOTH {RELEASE}",
        f"{UV_FORCED} --default-index BOTH {RELEASE}",
        begin="stock",
    ),
    *both("a patched wheel without an index", f"{NO_INDEX} {WHEEL}", begin="nothing"),
    *both(
        "the tree without an index",
        f"{NO_INDEX} ./livekit-agents",
        begin="nothing",
        note="the build finds the stock release in the folder, though patched ones lie beside it",
        quick="pip, uv",
        versions=TWO,
    ),
    *both(
        "back to stock",
        f"{TREE}\npip install {RELEASE}",
        note="the installed wheel satisfies it; reinstall it as in the next row",
    ),
    *both(
        "back to stock, forced",
        f"{TREE}\n{FORCED} {RELEASE}",
        f"uv {TREE}\n{UV_FORCED} {RELEASE}",
        gives=NEWEST,
        quick="pip, uv",
        versions=TWO,
    ),
    *both("upgrade, no later release", f"{TREE}\npip install -U livekit-agents"),
    *both(
        "upgrade to a later stock release",
        UPGRADED,
        gives=NEWEST,
        note="without a word; `ctxlock audit` in CI notices it",
    ),
    pip(
        "CI after such an upgrade",
        f"{UPGRADED}\nctxlock audit --python .venv/bin/python",
        fails="2 bare: overlapping updates lose items there",
        note="the exit code is 1",
    ),
    *both("git", "pip install 'livekit-agents @ git+GIT#subdirectory=livekit-agents'"),
    *PROJECT_CASES,
]
