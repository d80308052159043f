"""Builds and checks a livekit-agents whose realtime context updates cannot overlap."""

__all__ = ["PATCH_NUMBER"]

PATCH_NUMBER = 3
"""The ``n`` of ``+ctxlock.<n>.lock`` and ``.full``, the local versions; raised with each change."""
