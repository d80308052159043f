"""Fixtures and plugins of the whole suite."""

from __future__ import annotations

import os

pytest_plugins = ["_realtime_support"]


def pytest_configure() -> None:
    # pytest-xdist says how wide the user's terminal is, and what tests start would wrap its lines
    os.environ.pop("COLUMNS", None)
