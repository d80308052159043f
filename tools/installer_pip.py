"""Cases of pip's."""

from __future__ import annotations

from functools import partial

from installer_case import FULL, NEWEST, OLDER, OLDER_PATCHED, PATCHED, PLUGINS, Case

__all__ = ["PIP_CASES"]

PIPS = ("23.0.1", "newest")
THREE = ("23.0.1", "23.2.1", "newest")

pip = partial(Case, "pip")

PIP_CASES = [
    pip(
        "the tree, into an empty environment",
        "pip install ./livekit-agents\npip check",
        PATCHED,
        begin="nothing",
        quick=True,
    ),
    pip(
        "the tree over stock", "pip install ./livekit-agents", PATCHED, versions=THREE, begin=NEWEST
    ),
    pip(
        "an older release",
        f"pip install ./livekit-agents --config-settings upstream={OLDER}",
        OLDER_PATCHED,
        versions=PIPS,
    ),
    pip(
        "an older release, in short",
        f"pip install ./livekit-agents -C upstream={OLDER}",
        OLDER_PATCHED,
    ),
    pip(
        "an older release, in short",
        f"pip install ./livekit-agents -C upstream={OLDER}",
        "no such option: -C",
        fails=True,
        versions=("23.0.1",),
        note="spell it `--config-settings`",
    ),
    pip(
        "an older release by the variable",
        f"CTXLOCK_UPSTREAM={OLDER} pip install ./livekit-agents",
        OLDER_PATCHED,
        versions=PIPS,
    ),
    pip(
        "a requirements file with a setting",
        "pip install -r requirements.txt",
        OLDER_PATCHED,
        versions=("23.2.1", "newest"),
        files={"requirements.txt": f'./livekit-agents --config-settings "upstream={OLDER}"'},
    ),
    pip(
        "a requirements file with a setting",
        "pip install -r requirements.txt",
        "no such option: --config-settings",
        fails=True,
        versions=("23.0.1",),
        files={"requirements.txt": f'./livekit-agents --config-settings "upstream={OLDER}"'},
        note="set `CTXLOCK_UPSTREAM`, or take the line that `ctxlock build` prints",
    ),
    pip(
        "a patched wheel and a stock constraint",
        f"pip install -c constraints.txt wheels/livekit_agents-{PATCHED}-py3-none-any.whl",
        PATCHED,
        versions=THREE,
        files={"constraints.txt": f"livekit-agents=={NEWEST}"},
    ),
    pip(
        "the tree and a stock constraint",
        "pip install -c constraints.txt ./livekit-agents",
        PATCHED,
        versions=THREE,
        files={"constraints.txt": f"livekit-agents=={NEWEST}"},
    ),
    pip(
        "the tree and a constraint with the local version",
        "pip install -c constraints.txt ./livekit-agents",
        PATCHED,
        versions=THREE,
        files={"constraints.txt": f"livekit-agents=={PATCHED}"},
    ),
    pip(
        "the tree and such a constraint in the environment",
        "PIP_CONSTRAINT=$PWD/constraints.txt pip install ./livekit-agents",
        PATCHED,
        files={"constraints.txt": f"livekit-agents=={PATCHED}"},
    ),
    pip(
        "the tree and such a constraint in the environment",
        "PIP_CONSTRAINT=$PWD/constraints.txt pip install ./livekit-agents",
        "conflict",
        fails=True,
        versions=("23.0.1", "23.2.1"),
        files={"constraints.txt": f"livekit-agents=={PATCHED}"},
        note="these apply it to the build, too, which needs stock; give it with `-c`, or "
        "without the local version",
    ),
    pip(
        "extras from the tree",
        f"pip install './livekit-agents[{PLUGINS}]'\npip check",
        PATCHED,
        versions=PIPS,
    ),
    pip(
        "a plugin of the same release",
        f"pip install ./livekit-agents livekit-plugins-openai=={NEWEST}\npip check",
        PATCHED,
        quick=True,
        versions=PIPS,
    ),
    pip(
        "the scope full",
        "pip install ./livekit-agents --config-settings scope=full",
        FULL,
        versions=PIPS,
    ),
    pip(
        "a patched wheel from a folder",
        f"pip install --find-links wheels livekit-agents=={PATCHED}",
        PATCHED,
    ),
    pip(
        "the release alone, from a folder that has both scopes",
        f"pip install --find-links wheels livekit-agents=={NEWEST}",
        PATCHED,
        note="`lock` sorts after `full`",
        versions=PIPS,
    ),
    pip(
        "a patched wheel from an extra index",
        f"pip install --extra-index-url OVERLAY livekit-agents=={PATCHED}",
        PATCHED,
        versions=PIPS,
    ),
    pip(
        "the release alone, from an index that has both",
        f"pip install --index-url BOTH livekit-agents=={NEWEST}",
        PATCHED,
    ),
    pip(
        "the same over stock",
        f"pip install --index-url BOTH livekit-agents=={NEWEST}",
        NEWEST,
        begin=NEWEST,
        note="name the whole version, or force it as in the next row",
        versions=PIPS,
    ),
    pip(
        "the same over stock, forced",
        f"pip install --force-reinstall --no-deps --index-url BOTH livekit-agents=={NEWEST}",
        PATCHED,
        begin=NEWEST,
    ),
    pip(
        "a patched wheel without an index",
        f"pip install --no-index --find-links everything livekit-agents=={PATCHED}",
        PATCHED,
    ),
    pip(
        "the tree without an index",
        "pip install --no-index --find-links everything ./livekit-agents",
        PATCHED,
        note="the build finds the stock release in the folder, though patched ones lie beside it",
        quick=True,
        versions=PIPS,
    ),
    pip(
        "back to stock",
        f"pip install ./livekit-agents\npip install livekit-agents=={NEWEST}",
        PATCHED,
        note="the installed wheel satisfies it; force it as in the next row",
    ),
    pip(
        "back to stock, forced",
        "pip install ./livekit-agents\n"
        f"pip install --force-reinstall --no-deps livekit-agents=={NEWEST}",
        NEWEST,
        quick=True,
        versions=PIPS,
    ),
    pip(
        "upgrade, no later release",
        "pip install ./livekit-agents\npip install -U livekit-agents",
        PATCHED,
    ),
    pip(
        "upgrade to a later stock release",
        f"pip install ./livekit-agents --config-settings upstream={OLDER}\n"
        "pip install -U livekit-agents",
        NEWEST,
        note="without a word; `ctxlock audit` in CI notices it",
    ),
    pip(
        "CI after such an upgrade",
        f"pip install ./livekit-agents --config-settings upstream={OLDER}\n"
        "pip install -U livekit-agents\nctxlock audit --python .venv/bin/python",
        "2 bare: overlapping updates lose items there",
        fails=True,
        note="the exit code is 1",
    ),
    pip(
        "git",
        "pip install 'livekit-agents @ git+GIT#subdirectory=livekit-agents'",
        PATCHED,
    ),
]
