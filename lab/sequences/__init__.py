"""A fuzz in which nothing overlaps, and the commonest pattern of all as cases.

`python -m lab.sequences` makes scripts from seeds, goes through each on stock and on patched, idle
between the steps, and compares; `--seed 7 --length 3` replays the beginning of one.
"""
