"""Chooses the upstream release that a build starts from, and how much it changes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from email.parser import BytesParser
from pathlib import Path
from typing import Literal, get_args

from packaging.version import InvalidVersion, Version

from . import PATCH_NUMBER
from .errors import CtxlockError
from .verified import NEWEST

__all__ = [
    "DEFAULT_SCOPE",
    "HOW_TO_LOCK",
    "NEWEST_VERIFIED",
    "OLDEST",
    "SETTING",
    "VARIABLE",
    "Scope",
    "choose_release",
    "choose_scope",
    "overlay_version",
    "overlay_versions",
    "parse",
    "parse_scope",
    "public",
    "scope_of",
    "warn_if_unverified",
]

NEWEST_VERIFIED = Version(NEWEST)
"""The newest release whose regressions this repository has run; the default."""

OLDEST = Version("1.0.0")
"""The first release that has the realtime sites."""

SETTING = "upstream"
VARIABLE = "CTXLOCK_UPSTREAM"
SCOPE_SETTING = "scope"
SCOPE_VARIABLE = "CTXLOCK_SCOPE"

Scope = Literal["lock", "full"]
"""`lock`: the lock alone. `full`: a smarter lock, a module more, for what it loses."""

DEFAULT_SCOPE: Scope = "lock"
"""The widest scope that does, where no updates overlap, what stock does with every provider."""

HOW_TO_LOCK = f"leave out `-C {SCOPE_SETTING}=full`, `{SCOPE_VARIABLE}=full` or `--scope full`"
"""What to do for the default, said to somebody who asked for more."""


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
    version = _bound_version(tree / "PKG-INFO")
    bound = version and Version(version.public)
    if bound is not None and wish is not None and wish != bound:
        raise CtxlockError(
            f"{source} asks for livekit-agents {wish}, but this source distribution is made for "
            f"{bound}; leave it out, or build from the repository."
        )
    return bound or wish or NEWEST_VERIFIED


def choose_scope(settings: Mapping[str, object] | None, tree: Path) -> Scope:
    """How much the build's user wants changed.

    A source distribution is bound to the scope in its version. Otherwise the config setting `scope`
    decides, or the environment variable `CTXLOCK_SCOPE`, or the default.

    Raises:
        CtxlockError: The wish is no scope, or contradicts the source distribution.
    """
    wish = None
    _check(settings or {})
    if SCOPE_SETTING in (settings or {}):
        wish = parse_scope((settings or {})[SCOPE_SETTING], f"The config setting {SCOPE_SETTING!r}")
    elif variable := os.environ.get(SCOPE_VARIABLE):
        wish = parse_scope(variable, SCOPE_VARIABLE)
    version = _bound_version(tree / "PKG-INFO")
    bound = None if version is None else scope_of(version)
    if bound is not None and wish is not None and wish != bound:
        raise CtxlockError(
            f"The scope {wish} is asked for, but this source distribution is made for {bound}; "
            "leave it out, or build from the repository."
        )
    return bound or wish or DEFAULT_SCOPE


def parse_scope(text: object, source: str) -> Scope:
    """Reads a scope.

    Args:
        text: What the user gave.
        source: Where, for the error.

    Raises:
        CtxlockError: It is none.
    """
    for scope in get_args(Scope):
        if text == scope:
            return scope  # type: ignore[no-any-return]
    raise CtxlockError(f"{source} is {text!r}, which is no scope; give lock or full.")


def warn_if_unverified(release: Version) -> None:
    """Says on stderr that no regression was run on `release`, if that is so."""
    if release > NEWEST_VERIFIED:
        print(
            f"ctxlock: livekit-agents {release} is later than {NEWEST_VERIFIED}, the newest "
            "release that the regressions were run on; it is built because every check passed.",
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
            f"livekit-agents {release} is too old; ctxlock patches {OLDEST} and later."
        )
    return release


def overlay_version(release: Version, scope: Scope = DEFAULT_SCOPE) -> Version:
    """The version of the overlay wheel that is built from `release`.

    Where an index has both scopes, `==` takes the higher version: `lock` sorts after `full`.
    """
    return Version(f"{release}+ctxlock.{PATCH_NUMBER}.{scope}")


def overlay_versions(release: Version) -> list[Version]:
    """The versions of all overlay wheels of `release` that this patch or an earlier one made.

    They may lie beside the stock release that is to be patched.
    """
    labels = ["1", "1.full"]  # the first patch did not name the scope lock
    labels += [f"{n}.{scope}" for n in range(2, PATCH_NUMBER + 1) for scope in get_args(Scope)]
    return [Version(f"{release}+ctxlock.{label}") for label in labels]


def scope_of(version: Version) -> Scope:
    """The scope of an overlay wheel of that version; patch 1 named only the scope full."""
    return "full" if (version.local or "").endswith(".full") else "lock"


def public(text: str) -> Version:
    """An installed version without its local label; one that is none counts as the oldest."""
    try:
        return Version(Version(text).public)
    except InvalidVersion:
        return Version("0")


def _wish(settings: Mapping[str, object]) -> tuple[Version | None, str]:
    _check(settings)
    if SETTING in settings:
        source = f"The config setting {SETTING!r}"
        return parse(settings[SETTING], source), source
    if variable := os.environ.get(VARIABLE):
        return parse(variable, VARIABLE), VARIABLE
    return None, ""


def _check(settings: Mapping[str, object]) -> None:
    """Refuses a key that is nearly a known one, and a known one that is given twice."""
    for key, value in settings.items():
        # a slip would build something else than what was asked for
        known = [SETTING, SCOPE_SETTING]
        if key not in known and (meant := get_close_matches(key.lower(), known)):
            raise CtxlockError(f"The config setting {key!r} is unknown; did you mean {meant[0]!r}?")
        if key in known and isinstance(value, list) and len(value) > 1:
            raise CtxlockError(
                f"The config setting {key!r} is given {len(value)} times; give it once."
            )


def _bound_version(pkg_info: Path) -> Version | None:
    if not pkg_info.is_file():
        return None
    version = BytesParser().parsebytes(pkg_info.read_bytes(), headersonly=True)["Version"]
    try:
        return Version(version or "")
    except InvalidVersion:
        raise CtxlockError(
            f"{pkg_info} names no valid version; unpack the source distribution again."
        ) from None
