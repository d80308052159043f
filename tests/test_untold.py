"""What goes on in a file of the scope `full`, and its lock cannot be told: it is refused."""

from __future__ import annotations

import pytest
from activity import HERE, NAME, REPLACING, module, refuses

from ctxlock.analysis.without_calls import parts_of
from ctxlock.errors import NotUnderstood
from ctxlock.patching.patch import patch_source

METHODS = """\
async def _detach_reusable_resources(self, successor):
    if self._rt_session.chat_ctx.is_equivalent(successor.chat_ctx):
        kept.rt_session = self._rt_session
        self._rt_session = None
    return kept

async def _start_session(self, kept):
    if kept:
        self._rt_session = kept.rt_session
    else:
        self._rt_session = self.llm.session()
    self._rt_session.on("error", self._on_error)
    self._rt_session.on("remote_item_added", self._on_remote_item_added)
    self._rt_session.on(
        "input_audio_transcription_completed",
        self._on_input_audio_transcription_completed,
    )
    await self._rt_session.update_chat_ctx(self._agent.chat_ctx)

async def _close_session(self):
    if self._rt_session is not None:
        await self._rt_session.aclose()

def _on_error(self, ev):
    log(ev)

def _on_remote_item_added(self, ev):
    record(ev)

def _on_input_audio_transcription_completed(self, ev):
    msg = make(ev)
    self._agent._chat_ctx._upsert_item(msg)
    self._session._conversation_item_added(msg)

async def _tts_task_impl(self, speech):
    speech._mark_generation_done()
    try:
        if self._rt_session is not None:
            ctx = self._rt_session.chat_ctx.copy()
            ctx.insert(spoken_msg)
            await self._rt_session.update_chat_ctx(ctx)
    except Refused:
        log(spoken_msg)

async def _realtime_reply_task(self, text):
    ctx = self._rt_session.chat_ctx.copy()
    msg = ctx.add_message(text)
    await self._rt_session.update_chat_ctx(ctx)
    self._agent._chat_ctx._upsert_item(msg)
    self._session._conversation_item_added(msg)

async def _realtime_generation_task_impl(self, speech, heard, ran):
    any_skipped = False
    for part in heard:
        if part.skipped:
            any_skipped = True
            log(part.msg.message_id)
            continue
        self._agent._chat_ctx._upsert_item(msg)
        self._session._conversation_item_added(msg)
    if any_skipped and speech:
        await self._rt_session.update_chat_ctx(self._agent._chat_ctx)
    for done in ran:
        self._agent._chat_ctx._upsert_item(done.fnc_call)
        self._agent._chat_ctx._upsert_item(done.fnc_call_out)
    if speech.interrupted:
        ctx = self._rt_session.chat_ctx.copy()
        ctx.items.extend(outputs)
        await self._rt_session.update_chat_ctx(ctx)
    else:
        new = self._rt_session.chat_ctx.copy()
        new.items.extend(outputs)
        await self._rt_session.update_chat_ctx(new)
"""
"""All that the scope full is about, in small."""

WHOLE = module(REPLACING, METHODS)
RECORDED = "self._agent._chat_ctx._upsert_item(msg)\n            self._session"
OUTPUT = "self._agent._chat_ctx._upsert_item(done.fnc_call_out)"
REASON = "The scope full cannot follow what goes on here; build with the scope lock: leave out `-C"


def test_all_of_it_is_told() -> None:
    assert len(parts_of(patch_source(WHOLE.encode(), NAME, "full").source)) == 7


SPANS = {
    "replacement by the agent": (
        "self._agent._chat_ctx = chat_ctx\n",
        "self._agent.replace(chat_ctx)\n",
    ),
    "unknown role": ("_realtime_reply_task", "_other"),
    "turn of another kind": ("add_message(text)", "add_turn(text)"),
    "outputs inserted": ("new.items.extend(outputs)", "new.insert(outputs)"),
    "other outputs": ("new.items.extend(outputs)", "new.items.extend(all.of)"),
    "more outputs": (
        "new.items.extend(outputs)\n",
        "new.items.extend(outputs)\n            new.items.extend(more)\n",
    ),
    "cleanup of nothing": ("any_skipped = True", "log()"),
    "another message": ("ctx.insert(spoken_msg)", "ctx.insert(spoken)"),
    "speech that goes on": ("speech._mark_generation_done()", "log()"),
    "speech that ends otherwise": ("speech._mark_generation_done()", "done()"),
    "speech that may go on": (
        "        speech._mark_generation_done()\n",
        "        if speech:\n            speech._mark_generation_done()\n",
    ),
    "speech that ends twice": (
        "speech._mark_generation_done()\n",
        "speech._mark_generation_done()\n        speech._mark_generation_done()\n",
    ),
}


@pytest.mark.parametrize(("old", "new"), SPANS.values(), ids=SPANS)
def test_refuses_a_span(old: str, new: str) -> None:
    assert WHOLE.count(old) == 1
    source = WHOLE.replace(old, new)
    with pytest.raises(NotUnderstood, match=REASON) as refused:
        patch_source(source.encode(), NAME, "full")
    assert ".update_chat_ctx(" in source.splitlines()[refused.value.line - 1]
    patch_source(source.encode(), NAME, "lock")


STATEMENTS = {
    "another replacement": (
        "self._agent._chat_ctx = chat_ctx\n",
        "self._agent._chat_ctx = chat_ctx.copy()  # <- here\n"
        "        self._agent._chat_ctx = chat_ctx\n",
    ),
    "handoff in a call": ("return kept\n", "return keep(kept)  # <- here\n"),
    "session kept elsewhere": ("= kept.rt_session", "= kept.session  # <- here"),
    "session opened": ("= self.llm.session()", "= self.llm.open()  # <- here"),
    "session on an error": ("log(ev)", "self._rt_session = self.llm.session()  # <- here"),
    "close in a call": (
        "await self._rt_session.aclose()",
        "await wait(self._rt_session.aclose())  # <- here",
    ),
    "close passed on": ("log(ev)", "close(self._rt_session.aclose)  # <- here"),
    "message of another name": (RECORDED, RECORDED.replace("(msg)", "(said)  # <- here")),
    "recorded in another way": (
        RECORDED,
        RECORDED.replace("_upsert_item(msg)", "put(msg)  # <- here"),
    ),
    "alias": (RECORDED, f"alias = self._agent._chat_ctx  # <- here\n            {RECORDED}"),
    "output": (OUTPUT, OUTPUT.replace("fnc_call_out", "out") + "  # <- here"),
    "flag twice": ("log(part.msg.message_id)", "self.flag = any_skipped = True  # <- here"),
    "flag from elsewhere": ("any_skipped = False", "any_skipped = old(speech)  # <- here"),
}


@pytest.mark.parametrize(("old", "new"), STATEMENTS.values(), ids=STATEMENTS)
def test_refuses_a_statement(old: str, new: str) -> None:
    assert WHOLE.count(old) == 1
    source = WHOLE.replace(old, new)
    with refuses(source, REASON):
        patch_source(source.encode(), NAME, "full")
    patch_source(source.encode(), NAME, "lock")


def test_refuses_a_handler_without_a_name() -> None:
    old = '"remote_item_added", self._on_remote_item_added)'
    source = WHOLE.replace(old, f'"remote_item_added", lambda ev: record(ev))  {HERE}')
    with refuses(source, REASON):
        patch_source(source.encode(), NAME, "full")


@pytest.mark.parametrize("event", ["remote_item_added", "input_audio_transcription_completed"])
def test_refuses_a_handler_of_another_name(event: str) -> None:
    source = WHOLE.replace(f"_on_{event}", "_on_it")
    source = source.replace("_on_it(self, ev):", f"_on_it(self, ev):  {HERE}")
    with refuses(source, REASON):
        patch_source(source.encode(), NAME, "full")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("kept.rt_session = ", "kept.session = ", id="session handed over"),
        pytest.param("log(part.msg.message_id)", "log(part.msg.id)", id="message skipped"),
        pytest.param("self._session._conversation", "self._talk._conversation", id="history"),
        pytest.param("_conversation_item_added", "_item_added", id="event"),
        pytest.param("_added(self, ev):\n        record(", "_added(me, ev):\n        (", id="self"),
    ],
)
def test_refuses_to_name_what_nothing_else_names(old: str, new: str) -> None:
    assert old in WHOLE
    with pytest.raises(NotUnderstood, match=REASON):
        patch_source(WHOLE.replace(old, new).encode(), NAME, "full")
