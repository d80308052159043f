"""The sites of a livekit-agents as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from ..analysis.sites import Site

__all__ = ["site_table"]


def site_table(sites: Sequence[Site]) -> Table:
    """The sites as a table that fits a terminal of 80 columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("role", "function", "lines", "state"):
        table.add_column(column, overflow="fold")
    colours = {"guarded": "green", "bare": "red", "read-only": "dim", "unchecked": "yellow"}
    for site in sites:
        lines = f"{site.first_line}-{site.last_line}"
        state = "unchecked" if site.rechecked is False else site.state
        table.add_row(site.role, site.function, lines, f"[{colours[state]}]{state}[/]")
    return table
