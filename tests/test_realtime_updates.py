"""Updates: what is asked of the provider, how often, and who hears of it when that fails."""

from __future__ import annotations

from typing import Any

import pytest
from _realtime_support import BEYOND_THE_LOCK, CATCHES_FAILED_UPDATES, closed_by_full, needs
from reconnections import let_it_repeat
from silent_provider import ForgetfulSession, SilentModel
from talks import asked

from ctxlock.races.fake_realtime import FakeRealtimeModel
from ctxlock.races.harness import GatedTool, Harness, idle, running
from ctxlock.races.releases import has_full_scope
from ctxlock.races.scenario import agent_with, note
from ctxlock.races.verdict import check, name_items
from livekit.agents import llm

pytestmark = needs(BEYOND_THE_LOCK, CATCHES_FAILED_UPDATES)

BEFORE, HELLO = 'user "before"', 'user "hello"'
CALL, OUTPUT = "function_call lookup", "function_call_output of lookup"

full_alone = pytest.mark.skipif(not has_full_scope(), reason="only the scope full has the module")


def created(talk: Harness) -> list[str]:
    """What all updates so far have created, by name."""
    return name_items(item for push in talk.realtime.pushes for item in push.creates)


class TestWhatIsSent:
    async def test_each_update_is_asked_for_once(self) -> None:
        lookup = GatedTool("lookup")
        async with running(agent_with(lookup)) as talk:
            updates = asked(talk)
            await talk.text_turn("hello")
            await talk.call(lookup)
            lookup.finish()
            await idle()
            await talk.expect(HELLO, CALL, OUTPUT)
            assert [names[-1] for names in updates] == [HELLO, OUTPUT]

    async def test_replacement_by_what_no_provider_is_sent_is_asked_for_once(self) -> None:
        async with running(agent_with()) as talk:
            updates = asked(talk)
            empty = llm.ChatMessage(role="user", content=[])
            await talk.replace(llm.AgentHandoff(new_agent_id="another"), empty, note("A"))
            await talk.replace(note("B"))
            check(talk.realtime, kept=['user "A"', 'user "B"'])
            assert len(updates) == 2

    @closed_by_full("what is heard behind an output that the agent has is not recorded")
    async def test_what_is_heard_stands_in_front_of_an_output_that_waits(self) -> None:
        lookup = GatedTool("lookup")
        async with running(agent_with(lookup)) as talk:
            await talk.call(lookup)
            push = talk.realtime.hold()
            talk.replace(note("A"))
            await push.entered.wait()
            lookup.finish()
            await idle()
            talk.realtime.hear()
            await idle()
            push.release()
            await talk.expect(CALL, 'user "A"', 'user ""', OUTPUT)

    async def test_output_of_a_call_that_was_removed_is_sent_alone(self) -> None:
        lookup = GatedTool("lookup")
        async with running(agent_with(lookup)) as talk:
            await talk.call(lookup)
            await talk.replace(without=[CALL])
            updates = asked(talk)
            lookup.finish()
            await idle()
            await talk.text_turn("hello")
            assert updates[0] == [OUTPUT]
            assert [len(names) for names in updates] == [1, 2]

    async def test_nothing_that_a_provider_repeats_by_itself(self) -> None:
        async with running(agent_with()) as talk:
            await talk.replace(note("before"))
            await talk.text_turn("hello")
            response = talk.realtime.respond()
            response.message("Good day.")
            response.done()
            await idle()
            updates, again = asked(talk), talk.realtime.hold()
            talk.realtime.cut()
            await idle()
            assert updates == []
            again.release()
            await talk.expect(BEFORE, HELLO)

    @closed_by_full("no provider repeats what is the system's")
    async def test_system_message_after_a_reconnection(self) -> None:
        async with running(agent_with()) as talk:
            rules = llm.ChatMessage(role="system", content=["Be brief."])
            await talk.replace(note("before"), rules, note("hello"))
            talk.realtime.cut()
            await let_it_repeat()
            await talk.expect(BEFORE, 'system "Be brief."', HELLO)

    @closed_by_full("a waiter outlives its activity's session", raises=AssertionError)
    async def test_nothing_of_an_agent_whose_session_is_gone(self) -> None:
        async with running(agent_with()) as talk:
            push = talk.realtime.hold()
            talk.replace(note("A"))
            await push.entered.wait()
            waiting = talk.replace(note("B"))
            await idle()
            talk.session.update_agent(agent_with())
            await idle()
            push.release()
            await talk.expect()
            assert waiting.done() and waiting.exception() is None
            assert 'user "B"' not in created(talk)

    async def test_message_that_goes_along_and_fails_again_harms_no_other(self) -> None:
        async with running(agent_with(), model=FakeRealtimeModel()) as talk:
            realtime: Any = talk.realtime
            update, errors = realtime.update_chat_ctx, [llm.RealtimeError("not in time")]

            async def update_chat_ctx(chat_ctx: llm.ChatContext) -> None:
                if 'user "poison"' in name_items(chat_ctx.items):
                    raise errors.pop() if errors else ValueError("no such thing can be sent")
                await update(chat_ctx)

            realtime.update_chat_ctx = update_chat_ctx
            await talk.text_turn("poison")
            await talk.text_turn("hello")
            await idle()
            assert errors == []
            check(talk.realtime, kept=[HELLO])
            assert name_items(talk.local.items).count(HELLO) == 1
            assert len(realtime.responses) == 2  # each was replied to

    async def test_call_of_a_forgetful_provider_is_not_sent_with_its_output(self) -> None:
        lookup = GatedTool("lookup")
        async with running(agent_with(lookup), model=SilentModel(ForgetfulSession)) as talk:
            updates = asked(talk)
            await talk.call(lookup)
            await talk.text_turn("hello")
            lookup.finish()
            await idle()
            assert updates == [[HELLO], [OUTPUT]]
