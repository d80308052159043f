"""Turns a stock release into an overlay wheel."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from .. import PATCH_NUMBER
from ..analysis.sites import Site
from ..errors import CtxlockError
from ..patching.patch import patch_source
from ..release import DEFAULT_SCOPE, Scope, overlay_version, warn_if_unverified
from ..target import TARGET
from .provenance import FORMAT, PROVENANCE
from .upstream import NAME, Upstream
from .wheel import replace_version, wheel_filename, write_wheel

__all__ = ["Overlay", "build_overlay", "metadata_files"]


@dataclass(frozen=True)
class Overlay:
    """A wheel that was built, its version and its sites."""

    path: Path
    version: Version
    sites: tuple[Site, ...]

    @property
    def sha256(self) -> str:
        """The hash of the whole wheel."""
        return _sha256(self.path.read_bytes())


def build_overlay(upstream: Upstream, folder: Path, scope: Scope = DEFAULT_SCOPE) -> Overlay:
    """Patches `upstream` and writes the overlay wheel into `folder`.

    Says on stderr if the release is later than any verified one.

    Raises:
        NothingToGuard: Every site of the release is guarded already.
        NotUnderstood: The release holds something that may not be rewritten.
        CtxlockError: The release has a file of the name of the one to add, or `folder` cannot be
            written to. Nothing is left behind in any case.
    """
    patched = patch_source(upstream.target, TARGET, scope)
    version = overlay_version(upstream.version, scope)
    files = dict(upstream.files)
    dist_info, metadata = metadata_files(upstream, scope)
    for path in upstream.files:
        if path.startswith(f"{upstream.dist_info}/"):
            del files[path]
    files.update({f"{dist_info}/{name}": content for name, content in metadata.items()})
    files[TARGET] = patched.source
    if taken := patched.added.keys() & files.keys():
        raise CtxlockError(f"livekit-agents {upstream.version} already has a file {min(taken)}.")
    files.update(patched.added)
    provenance = {
        "format": FORMAT,
        "upstream": str(upstream.version),
        "patch": PATCH_NUMBER,
        "scope": scope,
        "added": {path: _sha256(content) for path, content in patched.added.items()},
        "target": TARGET,
        "sha256": {"before": _sha256(upstream.target), "after": _sha256(patched.source)},
        "sites": [site.as_json() for site in patched.sites],
    }
    text = json.dumps(provenance, indent=2, sort_keys=True) + "\n"
    files[f"{dist_info}/{PROVENANCE}"] = text.encode()
    filename = wheel_filename(NAME, version, metadata["WHEEL"])
    warn_if_unverified(upstream.version)
    return Overlay(write_wheel(folder, filename, dist_info, files), version, patched.sites)


def metadata_files(upstream: Upstream, scope: Scope) -> tuple[str, dict[str, bytes]]:
    """The overlay's dist-info folder: its name, and upstream's files with the new version."""
    version = overlay_version(upstream.version, scope)
    prefix = f"{upstream.dist_info}/"
    files = {
        path.removeprefix(prefix): content
        for path, content in upstream.files.items()
        if path.startswith(prefix)
    }
    files["METADATA"] = replace_version(files["METADATA"], version)
    return f"livekit_agents-{version}.dist-info", files


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
