"""Takes variants through the script in the environment this runs in, and prints what was seen."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints an object of variants, each with its steps."""
    parser = argparse.ArgumentParser(prog="python -m lab.foreign.run", description=__doc__)
    parser.add_argument("variants", nargs="*", help="the variants; all of them by default")
    wanted = parser.parse_args(arguments).variants
    import ctxlock.races.clock  # noqa: F401 - takes hold of the clock before livekit.agents does

    from .steps import run
    from .talk import on_the_virtual_clock
    from .variants import VARIANTS

    seen = {}
    for name in wanted or VARIANTS:
        with on_the_virtual_clock() as recorder:
            seen[name] = run(VARIANTS[name](), recorder)
    json.dump(seen, sys.stdout, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
