"""Goes through variants, scripts or cases in this environment, and reports what was seen."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lab.inside import arguments, enter, explorers_clock, report

__all__ = ["main"]


def main(given: Sequence[str] | None = None) -> int:
    """Reports by name: of variants and seeds the steps, of cases what is wrong."""
    parser = arguments("lab.foreign.run", __doc__)
    parser.add_argument("what", choices=("variants", "seeds", "cases"), help="what to go through")
    parser.add_argument("names", nargs="*", help="which of them; all variants or cases by default")
    parser.add_argument("--length", type=int, help="how many actions of each script")
    options = parser.parse_args(given)
    explorers_clock()
    enter(options)
    from lab.sequences.cases import CASES, judge_case
    from lab.sequences.script import LENGTH, Script, play

    from .steps import run
    from .talk import on_the_virtual_clock
    from .variants import VARIANTS

    length = LENGTH if options.length is None else options.length
    ways: dict[str, tuple[Iterable[str], Callable[[str, Any], Any]]] = {
        "variants": (VARIANTS, lambda name, recorder: run(VARIANTS[name], recorder)),
        "seeds": ((), lambda seed, recorder: play(Script.of(int(seed), length), recorder)),
        "cases": (CASES, judge_case),
    }
    known, go_through = ways[options.what]
    seen: dict[str, Any] = {}
    for name in options.names or known:
        with on_the_virtual_clock() as recorder:
            seen[name] = go_through(name, recorder)
    report(options, seen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
