"""What ``session.say()`` said beside a realtime model."""

from __future__ import annotations

from _realtime_support import closed_by_full, fails_on_stock, needs

from ctxlock.races.harness import GatedTool, idle, running
from ctxlock.races.scenario import agent_with, note

TOLD = "1.8.9"  # the release from which on a realtime model is told


@needs("1.0.0", before=TOLD)
async def test_older_releases_push_nothing() -> None:
    async with running(agent_with()) as talk:
        await talk.say("Welcome.")
        await idle()
        assert talk.realtime.pushes == []


@needs(TOLD)
async def test_model_is_told() -> None:
    async with running(agent_with()) as talk:
        await talk.say("Welcome.")
        await talk.expect('assistant "Welcome."')


@needs(TOLD)
async def test_message_kept_out_of_the_context_is_not_pushed() -> None:
    async with running(agent_with()) as talk:
        await talk.session.say("Welcome.", add_to_chat_ctx=False)
        await talk.expect()
        assert talk.realtime.pushes == []


@needs(TOLD)
@fails_on_stock(since=TOLD)
async def test_two_spoken_messages_both_stay() -> None:
    async with running(agent_with()) as talk:
        await talk.overlap(lambda: talk.say("Welcome."), lambda: talk.say("How can I help?"))
        await talk.expect('assistant "Welcome."', 'assistant "How can I help?"', ordered=False)


@needs(TOLD)
@fails_on_stock(since=TOLD)
async def test_text_turn_behind_a_spoken_message_behind_a_tool_output() -> None:
    lookup = GatedTool("lookup")
    async with running(agent_with(lookup)) as talk:
        await talk.call(lookup)
        push = talk.realtime.hold()
        lookup.finish()
        await push.entered.wait()
        talk.say("One moment.")
        await idle()
        talk.text_turn("hello")
        await idle()
        push.release()
        output = "function_call_output of lookup"
        await talk.expect(output, 'assistant "One moment."', 'user "hello"', ordered=False)


@needs(TOLD)
@closed_by_full("the two sides place it by times of their own")
async def test_both_sides_have_it_in_the_same_place() -> None:
    async with running(agent_with()) as talk:
        await talk.overlap(lambda: talk.replace(note("A")), lambda: talk.say("Welcome."))
        await talk.expect('user "A"', 'assistant "Welcome."')
