"""What a run inside of an environment has in common, whatever is run there."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import logging
import sys
import warnings
from pathlib import Path
from typing import Any

__all__ = ["WrongEnvironment", "arguments", "enter", "explorers_clock", "report"]

_CTXLOCK = Path(__file__).resolve().parent.parent / "livekit-agents"


class WrongEnvironment(Exception):
    """livekit.agents is not the one that was meant."""


def arguments(module: str, description: str | None) -> argparse.ArgumentParser:
    """The options that each run has."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--folder", type=Path, help="where livekit.agents must come from")
    parser.add_argument("--version", help="which version of it that must be")
    parser.add_argument("--output", type=Path, help="a file for the report; else stdout")
    return parser


def explorers_clock() -> None:
    """Has the explorer's clock be the one that livekit.agents takes hold of; call it before."""
    sys.path.append(str(_CTXLOCK))  # the environments of the lab have it not
    import ctxlock.explorer.clock  # noqa: F401

    logging.getLogger("livekit").propagate = True


def enter(given: argparse.Namespace) -> None:
    """Makes sure that livekit.agents is what was meant; take hold of the clock before.

    Raises:
        WrongEnvironment: It comes from another folder, or is another version.
    """
    warnings.simplefilter("ignore")
    if given.folder is None:
        return
    import livekit.agents

    found = Path(str(livekit.agents.__file__)).resolve()
    if given.folder.resolve() not in found.parents:
        raise WrongEnvironment(f"livekit.agents was loaded from {found}, not from {given.folder}.")
    if (said := importlib.metadata.version("livekit-agents")) != given.version:
        raise WrongEnvironment(
            f"{given.folder} holds livekit-agents {said}, and {given.version} was meant."
        )


def report(given: argparse.Namespace, seen: Any) -> None:
    """Hands over what was seen."""
    if given.output is not None:
        given.output.write_text(json.dumps(seen), encoding="utf-8")
    else:
        json.dump(seen, sys.stdout, indent=1)
