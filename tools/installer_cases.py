"""What people do with installers, and what comes of it: the table that `installers.py` runs.

A command is written as its user would type it, in a folder that holds a copy of `livekit-agents/`,
a folder `wheels` with the patched wheels, a folder `everything` with those and all else that is
needed, and an environment `.venv`. STOCK, OVERLAY and BOTH are indexes: the published releases with
all that they need; the newest patched wheel alone; the published releases and every patched wheel.
GIT is a repository of the tree.
"""

from __future__ import annotations

from installer_pip import PIP_CASES
from installer_projects import PROJECT_CASES
from installer_uv import UV_PIP_CASES

__all__ = ["CASES"]

CASES = [*PIP_CASES, *UV_PIP_CASES, *PROJECT_CASES]
