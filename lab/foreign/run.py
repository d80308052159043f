"""Takes variants through the script in the environment this runs in, and reports what was seen."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lab.inside import arguments, enter, explorers_clock, report

__all__ = ["main"]


def main(given: Sequence[str] | None = None) -> int:
    """Reports an object of variants, each with its steps."""
    parser = arguments("lab.foreign.run", __doc__)
    parser.add_argument("variants", nargs="*", help="the variants; all of them by default")
    options = parser.parse_args(given)
    explorers_clock()
    enter(options)
    from .steps import run
    from .talk import on_the_virtual_clock
    from .variants import VARIANTS

    seen = {}
    for name in options.variants or VARIANTS:
        with on_the_virtual_clock() as recorder:
            seen[name] = run(VARIANTS[name], recorder)
    report(options, seen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
