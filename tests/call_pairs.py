"""Methods with the lock, and as they are with the calls that tell it what goes on."""

from __future__ import annotations

from methods import pair

_ADDED = {
    "replacement": """\
        async def update_chat_ctx(self, given):
            given = given.copy()

            # theirs
        +   self._rt_chat_ctx_lock.replacing(self, given)
            self._agent._chat_ctx = given
            if self._rt_session is not None:
                async with self._rt_chat_ctx_lock:
                    if self._rt_session is not None:
        +               given = self._agent._chat_ctx
                        await self._rt_session.update_chat_ctx(given)
    """,
    "text turn": """\
        async def _realtime_reply_task(self, text):
            async with self._rt_chat_ctx_lock:
                ctx = self._rt_session.chat_ctx.copy()
                said = ctx.add_message(role="user", content=text)  # the turn
        +       self._rt_chat_ctx_lock.typing(ctx, said)
                await self._rt_session.update_chat_ctx(ctx)
    """,
    "tool outputs": """\
        async def _realtime_generation_task(self, outputs):
            try:
                async with self._rt_chat_ctx_lock:
                    ctx = self._rt_session.chat_ctx.copy()
                    ctx.items.extend(outputs)
        +           self._rt_chat_ctx_lock.place(ctx, *outputs)
                    await self._rt_session.update_chat_ctx(ctx)
            except Refused:
                pass
    """,
    **{
        f"output recorded by {record}": f"""\
        async def _realtime_generation_task_impl(self, ran):
            for done in ran:
                self._agent._chat_ctx.{record}(done.fnc_call)
                self._agent._chat_ctx.{record}(done.fnc_call_out)
        +       self._rt_chat_ctx_lock.pending(done.fnc_call_out)
                self.show(done)
        """
        for record in ("_upsert_item", "insert", "items.append")
    },
    "outputs of an interrupted generation": """\
        async def _realtime_generation_task_impl(self, interrupted_fnc_outputs):
            self._agent._chat_ctx.insert(interrupted_fnc_outputs)
        +   self._rt_chat_ctx_lock.pending(*interrupted_fnc_outputs)
    """,
    "replies": """\
        async def _realtime_generation_task_impl(self, msg, chat_msg):
            self._agent._chat_ctx._upsert_item(msg)
        +   self._rt_chat_ctx_lock.said(msg)
            if msg:
                self._agent._chat_ctx.items.append(chat_msg)
        +       self._rt_chat_ctx_lock.said(chat_msg)
    """,
    "transcript": """\
        def _on_input_audio_transcription_completed(self, ev):
            msg = make(ev)
            self._agent._chat_ctx._upsert_item(msg)
        +   self._rt_chat_ctx_lock.said(msg)
    """,
    "message that was never played": """\
        async def _realtime_generation_task_impl(self, heard):
            any_skipped = False
            for part in heard:
                if part.skipped:
                    any_skipped = True
        +           self._rt_chat_ctx_lock.unheard(part.msg.message_id)
                    continue
    """,
    "spoken message": """\
        async def _tts_task_impl(self, speech, spoken_msg):
            speech._mark_generation_done()
        +   self._rt_chat_ctx_lock.pending(spoken_msg)
            async with self._rt_chat_ctx_lock:
                ctx = self._rt_session.chat_ctx.copy()
                ctx.insert(spoken_msg)
        +       self._rt_chat_ctx_lock.place(ctx, spoken_msg)
                await self._rt_session.update_chat_ctx(ctx)
    """,
    "handoff": """\
        async def _detach_reusable_resources(self, successor: AgentActivity, more=None):
            kept = collect()

            # what goes along
        +   self._rt_chat_ctx_lock.hand_over(successor, kept.rt_session)
            return kept
    """,
    "session that is handed over, or new": """\
        async def _start_session(self, kept):
            if kept:
                self._rt_session = kept.rt_session
        +       self._rt_chat_ctx_lock.attach(self, self._rt_session)
                kept.rt_session = None
            else:
                self._rt_session = self.llm.session(detect=True)
        +       self._rt_chat_ctx_lock = RealtimeContextLock(self)
            listen()
    """,
    "session until 1.1.7": """\
        async def start(self):
            self._rt_session = self.llm.session()
        +   self._rt_chat_ctx_lock = RealtimeContextLock(self)
    """,
    **{
        f"close in {method}": f"""\
        async def {method}(self):
            if self._rt_session is not None:
                await self._rt_session.aclose()
        +       self._rt_chat_ctx_lock.close()
                # later
                tidy()
        """
        for method in ("aclose", "_close_session")
    },
    "item of the provider's": """\
        def _on_remote_item_added(self, event):
        +   if self._rt_chat_ctx_lock.tell(event):
        +       return
            # theirs
            record(event)
    """,
    "item of the provider's under a docstring": '''\
        def _on_remote_item_added(self, event):
            """Records it."""
        +   if self._rt_chat_ctx_lock.tell(event):
        +       return

            record(event)
    ''',
}

ADDED = {name: pair(method) for name, method in _ADDED.items()}
"""A guarded method, and the same with the calls."""


ALONE = {
    "method of another name": """\
        async def other(self, given):
            self._agent._chat_ctx = given
            self._agent._chat_ctx._upsert_item(msg)
            any_skipped = True
            said = ctx.add_message(text)
            await self._rt_session.aclose()
            return given
    """,
    "what a method defines": """\
        async def _realtime_generation_task_impl(self, ctx):
            def later():
                self._agent._chat_ctx._upsert_item(msg)
                ctx.items.extend(outputs)

            class Inner:
                def _on_remote_item_added(self, ev):
                    pass
    """,
    "speech without a spoken_msg": """\
        async def _tts_task_impl(self, speech):
            msg = self._agent._chat_ctx.add_message(text)
            speech._mark_generation_done()
    """,
    "records of another shape": """\
        async def _realtime_generation_task_impl(self, reply):
            self._agent._chat_ctx._upsert_item(reply)
            self._agent._chat_ctx._upsert_item(reply.fnc_call)
            self._agent._chat_ctx._upsert_item(reply[0].fnc_call_out)
            self._other._chat_ctx._upsert_item(msg)
            await self._agent._chat_ctx._upsert_item(msg)
            self._agent._chat_ctx._upsert_item(msg, 1)
            self._agent._chat_ctx._upsert_item(*msg)
            self._agent._chat_ctx._upsert_item(item=msg)
            ctx.items.extend(reply.outputs)
    """,
    "replacement of another shape": """\
        async def update_chat_ctx(self, given):
            self._agent._chat_ctx = given.copy()
            self._agent._chat_ctx = kept = given
            await self._rt_session.update_chat_ctx(given.copy())
            await self._rt_session.update_chat_ctx(chat_ctx=given)
    """,
    "close in a line with more": """\
        async def aclose(self):
            done(); await self._rt_session.aclose()
            if self._rt_session: await self._rt_session.aclose()
            closing = self._rt_session.aclose()
    """,
    "method in one line": "def _on_remote_item_added(self, ev): record(ev)\n",
    "handoff of what has no name": """\
        async def _detach_reusable_resources(self, successor):
            if not successor:
                return
            return collect(successor)
    """,
    "session of another shape": """\
        async def _start_session(self, kept):
            self._rt_session = None
            self._rt_session = kept[0].rt_session
            self._rt_session: Session = self.llm.session()
    """,
}
"""Guarded methods to which nothing is added."""
