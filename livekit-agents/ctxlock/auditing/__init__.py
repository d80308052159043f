"""Says of a livekit-agents that somebody has what is guarded, and whether it is as built."""
