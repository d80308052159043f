"""What a run inside of an environment has in common, whatever is run there."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["arguments", "enter", "report"]

_CTXLOCK = Path(__file__).resolve().parent.parent.parent / "livekit-agents"


def arguments(module: str, description: str | None) -> argparse.ArgumentParser:
    """The options that each run has."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--folder", type=Path, help="where livekit.agents must come from")
    parser.add_argument("--version", help="which version of it that must be")
    parser.add_argument("--output", type=Path, help="a file for the report; else stdout")
    return parser


def enter(given: argparse.Namespace) -> None:
    """Takes hold of the clock, and then makes sure that livekit.agents is what was meant."""
    sys.path.append(str(_CTXLOCK))  # the environments of the lab have it not
    import ctxlock.explorer.clock  # noqa: F401 - before livekit.agents, which takes time.time

    warnings.simplefilter("ignore")
    logging.getLogger("livekit").propagate = True
    if given.folder is not None:
        from lab.worker import check_environment

        check_environment(given.folder, given.version)


def report(given: argparse.Namespace, seen: Any) -> None:
    """Hands over what was seen."""
    if given.output is not None:
        given.output.write_text(json.dumps(seen), encoding="utf-8")
    else:
        json.dump(seen, sys.stdout, indent=1)


def chosen(wanted: Sequence[str], known: Sequence[str]) -> list[str]:
    """What was asked for, or all of it.

    Raises:
        SystemExit: There is no such thing.
    """
    if unknown := [name for name in wanted if name not in known]:
        raise SystemExit(f"There is no {unknown[0]}, but {', '.join(known)}.")
    return [*wanted] or [*known]
