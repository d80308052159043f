"""Runs the front desk for a guest who types without waiting; the console has only those who wait.

Reads lines from stdin. Prints `typed` when the library has taken one up as far as it can, and each
message of the conversation. Run by another environment's Python.
"""

from __future__ import annotations

import asyncio
import sys

from front_desk import FrontDesk

from livekit.agents import AgentSession, ConversationItemAddedEvent, utils
from livekit.plugins import openai

ROUNDS = 500  # of the event loop; what has not come to rest by then waits for the server


async def main() -> None:
    utils.http_context._new_session_ctx()
    session: AgentSession[None] = AgentSession(llm=openai.realtime.RealtimeModel())

    @session.on("conversation_item_added")
    def tell(event: ConversationItemAddedEvent) -> None:
        if event.item.type == "message":
            print(f"{event.item.role}: {event.item.text_content}", flush=True)

    await session.start(agent=FrontDesk())
    print("ready", flush=True)
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        session.generate_reply(user_input=line)
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        print("typed", flush=True)
    await session.aclose()
    await utils.http_context._close_http_ctx()


asyncio.run(main())
