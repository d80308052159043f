"""The scripted realtime server as a command: rules, answers, acknowledgements, and what it reports.

The protocol is that of `ctxlock.races.loopback`, which knows nothing of this package. Imports
aiohttp, and nothing of LiveKit's.
"""
