"""The real OpenAI engine over a websocket on the loopback device, with only the far end scripted.

`serving` opens a model of ``livekit-plugins-openai`` for an ``AgentSession``; each of its
``sessions`` is the script of one conversation's far end, with the same words as the fake provider.
`provider` and `server` are the protocol alone, and need nothing of LiveKit's.
"""
