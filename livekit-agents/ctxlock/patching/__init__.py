"""Rewrites an `agent_activity.py` with LibCST: text in, text out."""
