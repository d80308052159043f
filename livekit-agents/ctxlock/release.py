"""Chooses the upstream release that a build starts from."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from email.parser import BytesParser
from pathlib import Path

from packaging.version import InvalidVersion, Version

from . import PATCH_NUMBER
from .errors import CtxlockError

__all__ = [
    "NEWEST_VERIFIED",
    "OLDEST",
    "SETTING",
    "VARIABLE",
    "choose_release",
    "overlay_version",
    "parse",
    "public",
    "warn_if_unverified",
]

NEWEST_VERIFIED = Version("1.8.9")
"""The newest release whose regressions this repository has run; the default."""

OLDEST = Version("1.0.0")
"""The first release that has the realtime sites."""

SETTING = "upstream"
VARIABLE = "CTXLOCK_UPSTREAM"


def choose_release(settings: Mapping[str, object] | None, tree: Path) -> Version:
    """The release that the build's user wants.

    A source distribution is bound to the release that its PKG-INFO names. Otherwise the config
    setting `upstream` decides, or the environment variable `CTXLOCK_UPSTREAM`, or the newest
    verified release.

    Args:
        settings: PEP 517's config settings; keys that are meant for other backends are ignored.
        tree: The source tree that is built.

    Raises:
        CtxlockError: The wish is no release, or contradicts the source distribution.
    """
    wish, source = _wish(settings or {})
    bound = _bound_release(tree / "PKG-INFO")
    if bound is not None and wish is not None and wish != bound:
        raise CtxlockError(
            f"{source} asks for livekit-agents {wish}, but this source distribution is made for "
            f"{bound}; leave it out, or build from the repository."
        )
    return bound or wish or NEWEST_VERIFIED


def warn_if_unverified(release: Version) -> None:
    """Says on stderr that no regression was run on `release`, if that is so."""
    if release > NEWEST_VERIFIED:
        print(
            f"ctxlock: livekit-agents {release} is later than {NEWEST_VERIFIED}, the newest "
            "release that the regressions were run on; it is built since every check holds.",
            file=sys.stderr,
        )


def parse(text: object, source: str) -> Version:
    """Reads the number of an upstream release.

    Args:
        text: What the user gave.
        source: Where, for the error.

    Raises:
        CtxlockError: It is no version, or none of a stock release from 1.0.0 on.
    """
    try:
        release = Version(text if isinstance(text, str) else "")
    except InvalidVersion:
        raise CtxlockError(
            f"{source} is {text!r}, which is no release number; give one such as {NEWEST_VERIFIED}."
        ) from None
    if release.local is not None:
        raise CtxlockError(
            f"{source} is {release}, which is no stock release; give {release.public}."
        )
    if len(release.release) != len(OLDEST.release):
        # 1.8 is 1.8.0 to an installer, and hardly what its writer means
        raise CtxlockError(
            f"{source} is {release}, which is not the full number of a release; give one such as "
            f"{NEWEST_VERIFIED}."
        )
    if release < OLDEST:
        raise CtxlockError(
            f"livekit-agents {release} is too old; {OLDEST} and later have the realtime sites."
        )
    return release


def overlay_version(release: Version) -> Version:
    """The version of the overlay wheel that is built from `release`."""
    return Version(f"{release}+ctxlock.{PATCH_NUMBER}")


def public(text: str) -> Version:
    """An installed version without its local label; one that is none counts as the oldest."""
    try:
        return Version(Version(text).public)
    except InvalidVersion:
        return Version("0")


def _wish(settings: Mapping[str, object]) -> tuple[Version | None, str]:
    for key in settings:
        # a slip would build another release than the one that was asked for
        if key != SETTING and get_close_matches(key.lower(), [SETTING]):
            raise CtxlockError(f"The config setting {key!r} is unknown; did you mean {SETTING!r}?")
    if SETTING in settings:
        source = f"The config setting {SETTING!r}"
        return parse(settings[SETTING], source), source
    if variable := os.environ.get(VARIABLE):
        return parse(variable, VARIABLE), VARIABLE
    return None, ""


def _bound_release(pkg_info: Path) -> Version | None:
    if not pkg_info.is_file():
        return None
    version = BytesParser().parsebytes(pkg_info.read_bytes(), headersonly=True)["Version"]
    try:
        return Version(Version(version or "").public)
    except InvalidVersion:
        raise CtxlockError(
            f"{pkg_info} names no valid version; unpack the source distribution again."
        ) from None
