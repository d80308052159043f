"""A fake realtime provider, a harness around a real AgentSession, and the races they decide.

Imports the standard library and livekit.agents, so that it runs beside any release of the latter;
`loopback` also imports aiohttp, which every release brings along, and ``livekit-plugins-openai``;
its `provider` and `server`, which `ctxlock serve` runs, import neither of LiveKit's.
"""
