"""Races with a handoff, which from 1.5.3 on hands the realtime session over to the next agent."""

from __future__ import annotations

from . import trace
from .harness import idle, local_context, running
from .names import name_items
from .releases import Releases
from .scenario import agent_with, note, scenario
from .verdict import HandoffCrash, LostUpdate, check

_REUSED = Releases("1.5.3")


@scenario(
    "replacement during a session start",
    "agent.update_chat_ctx is called while a handoff's session start awaits its instructions",
    applies=_REUSED,
    through_plugin=False,  # that engine does not wait for instructions
)
async def _replacement_during_session_start() -> None:
    async with running(agent_with()) as talk:
        talk.realtime.instructions_gate.clear()
        talk.realtime.instructions_entered.clear()
        talk.hand_off(agent_with())
        await talk.realtime.instructions_entered.wait()
        talk.replace(note("A"))
        await idle()
        talk.realtime.instructions_gate.set()
        await talk.expect('user "A"')


@scenario(
    "replacement waiting during a handoff",
    "a handoff takes the session away from a replacement that waits behind another",
    applies=_REUSED,
    broken=Releases("1.8.9"),
    failure=HandoffCrash,
)
async def _replacement_waiting_during_handoff() -> None:
    async with running(agent_with()) as talk:
        before = talk.activity
        push = talk.realtime.hold()
        talk.replace(note("A"))
        await push.entered.wait()
        waiting = talk.replace(note("B"))
        await idle()
        talk.hand_off(agent_with())
        await idle()
        push.release()
        try:
            await waiting
        except AttributeError as error:
            trace.note("raised", text=f"agent.update_chat_ctx: {error!r}")
            raise HandoffCrash(f"agent.update_chat_ctx raised {error!r}.") from error
        await idle()
        check(talk.realtime)
        if 'user "B"' not in name_items(local_context(before).items):
            raise LostUpdate("The replacement's effect on its own agent did not stand.")
