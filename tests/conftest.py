"""Fixtures and plugins of the whole suite."""

from __future__ import annotations

pytest_plugins = ["_realtime_support"]
