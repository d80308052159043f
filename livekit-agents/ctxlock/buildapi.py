"""The PEP 517 hooks; they delegate.

The build frontend installs the upstream release as a build requirement, from whatever index its
user has configured, and :func:`build_wheel` patches what it finds installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import NoReturn, ParamSpec, TypeVar

from .errors import CtxlockError
from .release import choose_release, choose_scope, overlay_version, overlay_versions
from .wheels.overlay import build_overlay, metadata_files
from .wheels.sdist import write_sdist
from .wheels.upstream import NAME, Upstream, read_installed

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_wheel",
]

Settings = Mapping[str, object] | None
Given = ParamSpec("Given")
Made = TypeVar("Made")

TREE = Path(__file__).resolve().parent.parent


def _hook(function: Callable[Given, Made]) -> Callable[Given, Made]:
    """Ends the process in the sentence of a `CtxlockError`, which else stands below a traceback.

    Frontends run a hook in a process of its own, and show what that printed if it failed.
    """

    @wraps(function)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> Made:
        try:
            return function(*args, **kwargs)
        except CtxlockError as e:
            raise SystemExit(f"ctxlock: {e}") from e

    return run


@_hook
def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Asks for the stock release, and not for an overlay wheel that satisfies it as well."""
    choose_scope(config_settings, TREE)  # a wrong one is refused before anything is fetched
    release = choose_release(config_settings, TREE)
    # pip from 23.0.1 on and uv know `===`, which refuses any label; but Poetry 2.5.1 gives up on it
    # ("invalid version constraint"). It reads no `!=` of a label either; then nothing is built.
    overlays = [f"!={version}" for version in overlay_versions(release)]
    return [f"{NAME}{','.join([f'=={release}', *overlays])}"]


@_hook
def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: Settings = None
) -> str:
    """Writes the wheel's dist-info folder and returns its name."""
    scope = choose_scope(config_settings, TREE)
    name, files = metadata_files(_upstream(config_settings), scope)
    for path, content in files.items():
        file = Path(metadata_directory, name, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return name


@_hook
def build_wheel(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Writes the overlay wheel and returns its file name."""
    scope = choose_scope(config_settings, TREE)
    return build_overlay(_upstream(config_settings), Path(wheel_directory), scope).path.name


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    """Nothing: a source distribution holds no file of upstream's."""
    return []


@_hook
def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Writes the source distribution and returns its file name."""
    version = overlay_version(
        choose_release(config_settings, TREE), choose_scope(config_settings, TREE)
    )
    return write_sdist(TREE, version, Path(sdist_directory)).name


@_hook
def get_requires_for_build_editable(config_settings: Settings = None) -> NoReturn:
    """Refuses: there is no source to edit."""
    raise CtxlockError(
        f"{NAME} is patched from the published release, so there is nothing to install in "
        "editable mode; install it without -e."
    )


@_hook
def build_editable(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> NoReturn:
    """Refuses: there is no source to edit."""
    get_requires_for_build_editable(config_settings)


def _upstream(settings: Settings) -> Upstream:
    release = choose_release(settings, TREE)
    upstream = read_installed()
    if upstream.version != release:
        raise CtxlockError(
            f"{NAME} {upstream.version} is installed, but {release} is to be patched; build with "
            f"isolation, or install {NAME}=={release} first."
        )
    return upstream
