"""Reads an `agent_activity.py` with the standard library's `ast`, and changes nothing."""
