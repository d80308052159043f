"""The command `ctxlock diff`."""

from __future__ import annotations

import sys

from ..release import DEFAULT_SCOPE
from ..target import TARGET
from .console import Quiet, Release, ScopeOption, fetch, scratch_folder

__all__ = ["diff"]


def diff(
    upstream: Release = None, scope: ScopeOption = DEFAULT_SCOPE, quiet: Quiet = False
) -> None:
    """Print what the patch changes and adds, as a unified diff against the stock release.

    Stock is livekit-agents as published; the diff is made from it on the spot. You can apply the
    diff with `git apply` in site-packages.

    Exit codes: 0 printed, 2 wrong usage, 3 it could not be made.
    """
    from ..patching.patch import patch_source, unified_diff

    with scratch_folder() as scratch:
        before = fetch(upstream, scratch).target
    patched = patch_source(before, TARGET, scope)
    sys.stdout.buffer.writelines(unified_diff(before, patched.source, TARGET))
    for path, content in patched.added.items():
        sys.stdout.buffer.writelines(unified_diff(b"", content, path))
