"""Builds and checks a livekit-agents whose realtime context updates cannot overlap."""

__all__ = ["PATCH_NUMBER"]

PATCH_NUMBER = 1
"""The ``n`` of the local version ``+ctxlock.<n>.full``; raised whenever the patch changes."""
