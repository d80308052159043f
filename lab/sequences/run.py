"""Goes through scripts and cases in the environment this runs in, and reports what was seen."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from lab.inside import arguments, enter, explorers_clock, report

__all__ = ["main"]


def main(given: Sequence[str] | None = None) -> int:
    """Reports the steps of each seed, and of each case what is wrong."""
    parser = arguments("lab.sequences.run", __doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds from there")
    parser.add_argument("--length", type=int, help="how many actions of each script")
    parser.add_argument("--cases", action="store_true", help="the cases instead of scripts")
    options = parser.parse_args(given)
    explorers_clock()
    enter(options)
    from lab.foreign.talk import on_the_virtual_clock

    from .cases import CASES, judge_case
    from .script import LENGTH, Script, play

    seen: dict[str, Any] = {}
    for case in CASES if options.cases else ():
        with on_the_virtual_clock() as recorder:
            seen[case] = judge_case(case, recorder)
    seeds = range(options.first, options.first + options.count)
    for seed in () if options.cases else seeds:
        script = Script.of(seed, LENGTH if options.length is None else options.length)
        with on_the_virtual_clock() as recorder:
            seen[str(seed)] = play(script, recorder)
    report(options, seen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
