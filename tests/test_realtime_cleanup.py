"""Never-played cleanup: what nobody heard of an interrupted reply is deleted, and stays so."""

from __future__ import annotations

from _realtime_support import needs

from ctxlock.races.harness import GatedTool, idle, running
from ctxlock.races.scenario import agent_with

pytestmark = needs("1.7.0")


async def test_unheard_reply_is_deleted() -> None:
    async with running(agent_with()) as talk:
        await talk.text_turn("hello")
        unheard = await talk.unheard_reply()
        assert unheard in [item.id for item in talk.realtime.server.items]
        talk.session.interrupt()
        await talk.expect('user "hello"', gone=[unheard])


async def test_text_turn_waits_for_the_cleanup_and_brings_nothing_back() -> None:
    async with running(agent_with()) as talk:
        await talk.text_turn("hello")
        unheard = await talk.unheard_reply()
        await talk.overlap(talk.session.interrupt, lambda: talk.text_turn("and now?"))
        await talk.expect('user "hello"', 'user "and now?"', gone=[unheard])


async def test_cleanup_after_an_interrupted_tool_output_keeps_the_output() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        await talk.call_and_interrupt(lookup)
        unheard = await talk.unheard_reply()
        await talk.overlap(lookup.finish, talk.session.interrupt)
        await idle()
        await talk.expect("function_call_output of lookup", gone=[unheard])
