"""A hotel's front desk.

`python examples/front_desk.py console --text` talks to it in a terminal. The model is OpenAI's, at
OPENAI_BASE_URL and with OPENAI_API_KEY, as the plugin reads them from the environment.
"""

import asyncio
import logging

from livekit.agents import (
    Agent,
    AgentServer,
    AgentSession,
    ConversationItemAddedEvent,
    JobContext,
    RunContext,
    cli,
)
from livekit.agents.llm import function_tool
from livekit.plugins import openai

logger = logging.getLogger("front-desk")

BOOKINGS = {"A17": "two nights from Friday in room 12, confirmed"}
FREE_ROOMS = {"single": 0, "double": 3}
HOLD_LINE = "Still looking, thank you for waiting."


class FrontDesk(Agent):
    """Answers questions about bookings and rooms."""

    def __init__(self) -> None:
        super().__init__(instructions="You are the front desk of a hotel. Be brief.")

    @function_tool
    async def look_up_booking(self, context: RunContext[None], number: str) -> str:
        """Look up a booking.

        Args:
            number: The booking's number.
        """
        await asyncio.sleep(1)  # the booking system takes its time
        return BOOKINGS.get(number, f"there is no booking {number}")

    @function_tool
    async def room_availability(self, context: RunContext[None], kind: str) -> str:
        """Say how many rooms are free tonight.

        Args:
            kind: "single" or "double".
        """
        return f"{FREE_ROOMS.get(kind, 0)} {kind} rooms are free tonight"

    @function_tool
    async def call_housekeeping(self, context: RunContext[None]) -> Agent:
        """Hand the guest over to housekeeping."""
        return Housekeeping()


class Housekeeping(Agent):
    """Sees to what is missing in a room."""

    def __init__(self) -> None:
        super().__init__(instructions="You are the housekeeping of a hotel. Be brief.")

    async def on_enter(self) -> None:
        """Greets the guest."""
        self.session.say("This is housekeeping, what do you need?")

    @function_tool
    async def bring(self, context: RunContext[None], item: str) -> str:
        """Have something brought to the guest's room.

        Args:
            item: What the guest needs.
        """
        return f"{item}: on its way"


async def keep_company(session: AgentSession[None]) -> None:
    """A guest who waits hears something now and then."""
    while True:
        await asyncio.sleep(1.5)
        if session.agent_state == "thinking":
            session.say(HOLD_LINE)


server = AgentServer()


@server.rtc_session()
async def answer(job: JobContext) -> None:
    """Answers one guest."""
    session: AgentSession[None] = AgentSession(llm=openai.realtime.RealtimeModel())

    @session.on("conversation_item_added")
    def write_down(event: ConversationItemAddedEvent) -> None:
        if event.item.type == "message":
            logger.info("%s: %s", event.item.role, event.item.text_content)

    await session.start(agent=FrontDesk(), room=job.room)
    company = asyncio.create_task(keep_company(session))

    async def leave() -> None:
        company.cancel()

    job.add_shutdown_callback(leave)


if __name__ == "__main__":
    cli.run_app(server)
