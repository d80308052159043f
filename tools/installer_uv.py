"""Cases of uv's pip interface."""

from __future__ import annotations

from functools import partial

from installer_case import FULL, NEWEST, OLDER, OLDER_PATCHED, PATCHED, PLUGINS, Case

__all__ = ["UV_PIP_CASES"]

uv = partial(Case, "uv")

UV_PIP_CASES = [
    uv(
        "the tree, into an empty environment",
        "uv pip install ./livekit-agents\nuv pip check",
        PATCHED,
        begin="nothing",
        quick=True,
    ),
    uv("the tree over stock", "uv pip install ./livekit-agents", PATCHED, begin=NEWEST, quick=True),
    uv(
        "an older release",
        f"uv pip install ./livekit-agents -C upstream={OLDER}",
        OLDER_PATCHED,
        quick=True,
    ),
    uv(
        "an older release by the variable",
        f"CTXLOCK_UPSTREAM={OLDER} uv pip install ./livekit-agents",
        OLDER_PATCHED,
        quick=True,
    ),
    uv(
        "a requirements file",
        "uv pip install -r requirements.txt",
        PATCHED,
        files={"requirements.txt": "./livekit-agents"},
        quick=True,
    ),
    uv(
        "a requirements file with a setting",
        "uv pip install -r requirements.txt",
        "config-settings",
        fails=True,
        files={"requirements.txt": f'./livekit-agents --config-settings "upstream={OLDER}"'},
        note="give `-C` on the command line, or the line that `ctxlock build` prints",
    ),
    uv(
        "the tree and a stock constraint",
        "uv pip install -c constraints.txt ./livekit-agents",
        PATCHED,
        files={"constraints.txt": f"livekit-agents=={NEWEST}"},
    ),
    uv(
        "the tree and a constraint with the local version",
        "uv pip install -c constraints.txt ./livekit-agents",
        PATCHED,
        files={"constraints.txt": f"livekit-agents=={PATCHED}"},
    ),
    uv(
        "extras from the tree",
        f"uv pip install './livekit-agents[{PLUGINS}]'\nuv pip check",
        PATCHED,
        quick=True,
    ),
    uv(
        "a plugin of the same release",
        f"uv pip install ./livekit-agents livekit-plugins-openai=={NEWEST}\nuv pip check",
        PATCHED,
    ),
    uv("the scope full", "uv pip install ./livekit-agents -C scope=full", FULL),
    uv(
        "a patched wheel from a folder",
        f"uv pip install --find-links wheels livekit-agents=={PATCHED}",
        PATCHED,
    ),
    uv(
        "the release alone, from a folder that has both scopes",
        f"uv pip install --find-links wheels livekit-agents=={NEWEST}",
        PATCHED,
        note="`lock` sorts after `full`",
    ),
    uv(
        "a patched wheel from an extra index",
        f"uv pip install --index OVERLAY livekit-agents=={PATCHED}",
        PATCHED,
        quick=True,
    ),
    uv(
        "another release beside an extra index",
        f"uv pip install --index OVERLAY livekit-agents=={OLDER}",
        f"there is no version of livekit-agents=={OLDER}",
        fails=True,
        note="uv asks only the first index that has the name, so OVERLAY hides all "
        "other releases; ask all indexes, as in the next row, or make it `explicit` in a project",
    ),
    uv(
        "the same, asking all",
        "uv pip install --index OVERLAY --index-strategy unsafe-best-match "
        f"livekit-agents=={OLDER}",
        OLDER,
    ),
    uv(
        "the release alone, from an index that has both",
        f"uv pip install --default-index BOTH livekit-agents=={NEWEST}",
        PATCHED,
    ),
    uv(
        "the same over stock",
        f"uv pip install --default-index BOTH livekit-agents=={NEWEST}",
        NEWEST,
        begin=NEWEST,
        note="name the whole version, or reinstall it as in the next row",
    ),
    uv(
        "the same over stock, forced",
        "uv pip install --reinstall-package livekit-agents --default-index BOTH "
        f"livekit-agents=={NEWEST}",
        PATCHED,
        begin=NEWEST,
    ),
    uv(
        "a patched wheel without an index",
        f"uv pip install --no-index --find-links everything livekit-agents=={PATCHED}",
        PATCHED,
        begin="nothing",
    ),
    uv(
        "the tree without an index",
        "uv pip install --no-index --find-links everything ./livekit-agents",
        PATCHED,
        begin="nothing",
        quick=True,
    ),
    uv(
        "back to stock",
        f"uv pip install ./livekit-agents\nuv pip install livekit-agents=={NEWEST}",
        PATCHED,
        note="the installed wheel satisfies it; reinstall it as in the next row",
    ),
    uv(
        "back to stock, forced",
        "uv pip install ./livekit-agents\n"
        f"uv pip install --reinstall-package livekit-agents livekit-agents=={NEWEST}",
        NEWEST,
        quick=True,
    ),
    uv(
        "upgrade, no later release",
        "uv pip install ./livekit-agents\nuv pip install -U livekit-agents",
        PATCHED,
    ),
    uv(
        "upgrade to a later stock release",
        f"uv pip install ./livekit-agents -C upstream={OLDER}\nuv pip install -U livekit-agents",
        NEWEST,
        note="without a word; `ctxlock audit` in CI notices it",
    ),
    uv(
        "git",
        "uv pip install 'livekit-agents @ git+GIT#subdirectory=livekit-agents'",
        PATCHED,
    ),
]
