"""Reads the log of calls that were held, and tells what of their conversations was lost.

It reads lines and nothing else: no livekit-agents is imported, and nothing is run.
"""
