"""The doctor on lines made by hand: each form, each wrapping, damage, and many calls at once."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from doctor_lines import (
    FORMS,
    START,
    WRAPPINGS,
    Script,
    console,
    keeping,
    losing,
    old_production,
    production,
)

from ctxlock.doctor import calls as calls_module, sources as sources_module
from ctxlock.doctor.examination import Examination, examine
from ctxlock.doctor.findings import EXPLAINED, STRONG, WEAK, Loss
from ctxlock.doctor.report import as_json, call_lines, remarks, sentences
from ctxlock.errors import CtxlockError

SECRET = "my number is 5551234"


def lines_of(script: Script, form: Callable[..., str] = production, **fields: Any) -> list[str]:
    return [form(written, **fields) for written in script.written]


@pytest.fixture
def told(tmp_path: Path) -> Callable[..., Examination]:
    """Examines a script, lines, or what a file holds; `name` is the file's."""

    def tell(log: Script | list[str] | bytes, name: str = "agent.log", **how: Any) -> Examination:
        lines = lines_of(log) if isinstance(log, Script) else log
        if isinstance(lines, list):
            lines = "".join(f"{line}\n" for line in lines).encode()
        (tmp_path / name).write_bytes(lines)
        return examine([str(tmp_path / name)], **how)

    return tell


Told = Callable[..., Examination]


def losses(found: Examination) -> list[Loss]:
    return [loss for call in found.calls for loss in call.losses]


def only(found: Examination) -> Loss:
    (loss,) = losses(found)
    return loss


def judged(found: Examination) -> list[tuple[str, str]]:
    return [(loss.grade, loss.race) for loss in losses(found)]


class TestForms:
    @pytest.mark.parametrize("beta", [False, True], ids=["current names", "beta names"])
    @pytest.mark.parametrize("form", FORMS)
    def test_a_loss_is_found(self, form: str, beta: bool, told: Told) -> None:
        found = told(lines_of(losing(beta=beta), FORMS[form]))
        loss = only(found)
        assert (loss.grade, loss.race) == (STRONG, "text turn during a tool output")
        assert loss.what == "the output of lookup (10 characters)"
        assert [how for how, _ in loss.aftermath] == [
            "the model called lookup again, with the same arguments"
        ]
        assert found.counts.damaged == 0
        assert found.whole is (form == "console")

    @pytest.mark.parametrize("form", FORMS)
    def test_nothing_is_found_where_nothing_is_lost(self, form: str, told: Told) -> None:
        found = told(lines_of(keeping(), FORMS[form]))
        assert found.calls == []
        assert not found.lost

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("wrapping", WRAPPINGS)
    def test_a_loss_is_found_in_a_wrapping(self, wrapping: str, form: str, told: Told) -> None:
        found = told([WRAPPINGS[wrapping](line) for line in lines_of(losing(), FORMS[form])])
        assert judged(found) == [(STRONG, "text turn during a tool output")]

    def test_words_that_look_like_a_log(self, told: Told) -> None:
        script = Script()
        words = """>>> {'type': 'response.output_text.delta'} "<<<" \\ {"lk.pii.event": 1} \n }"""
        item = script.message(words)
        script.update(item)
        for form in FORMS.values():
            found = told(lines_of(script, form))
            assert found.counts.events == len(script.written)

    def test_midnight(self, told: Told) -> None:
        script = Script(start=START - START % 86_400 - 1.5)
        output = script.looked_up()
        script.pause(3.0)
        script.update(script.message(), delete=(output,))
        assert only(told(lines_of(script, console))).age == 3.0

    def test_pieces_of_replies_are_counted_and_not_read(self, told: Told) -> None:
        for form in FORMS.values():
            found = told(lines_of(losing(), form))
            assert (found.counts.deltas, found.counts.other) == (2, 0)


class TestSources:
    def test_compressed(self, told: Told) -> None:
        assert told(gzip.compress("\n".join(lines_of(losing())).encode()), "agent.log.gz").lost

    def test_compressed_and_cut_off(self, told: Told) -> None:
        lines = "\n".join(lines_of(losing()) + lines_of(keeping("b"), job_id="AJ_2") * 50)
        found = told(gzip.compress(lines.encode())[:-40], "agent.log.gz")
        assert found.lost
        assert found.counts.cut == [0]
        assert "Cut off or damaged, so that the end is missing: " in " ".join(remarks(found))

    def test_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stream = io.TextIOWrapper(io.BytesIO("\n".join(lines_of(losing())).encode()))
        monkeypatch.setattr(sys, "stdin", stream)
        assert examine(["-"]).lost

    def test_a_call_goes_on_in_the_next_file(self, tmp_path: Path) -> None:
        lines = lines_of(losing(), job_id="AJ_1")
        paths = [tmp_path / "agent.log.1", tmp_path / "agent.log"]
        for path, part in zip(paths, (lines[:12], lines[12:]), strict=True):
            path.write_text("\n".join(part) + "\n", encoding="utf-8")
        found = examine([str(path) for path in paths])
        assert judged(found) == [(STRONG, "text turn during a tool output")]
        text = "\n".join(call_lines(found, found.calls[0], details=False))
        assert f"{paths[1]}:" in text

    def test_a_line_that_is_too_long_is_one_line(
        self, told: Told, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sources_module, "_LONGEST", 4096)
        long = '{"message": ">>>", "lk.pii.event": {"type": "' + "x" * 10 * 4096
        found = told("\n".join([long, *lines_of(losing()), long]).encode())
        assert (found.counts.lines, found.counts.damaged) == (len(losing().written) + 2, 2)
        assert [where.line for where in found.counts.samples] == [1, found.counts.lines]
        assert found.calls[0].first.where.line == 2

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
    def test_other_encodings(self, encoding: str, told: Told) -> None:
        assert told("\n".join(lines_of(losing())).encode(encoding)).lost

    def test_bytes_that_are_no_text(self, told: Told) -> None:
        lines = "\n".join(lines_of(losing())).encode().replace(b"hello", b"h\xff\xfe\xc3")
        assert told(b"\x00" * 999 + b"\xff\n" + lines).lost

    @pytest.mark.parametrize("length", [2, 15])
    def test_compressed_and_nothing_left_of_it(self, length: int, told: Told) -> None:
        with pytest.raises(CtxlockError, match=r"\(0 lines, and the end is missing\)"):
            told(gzip.compress(b"hello")[:length], "agent.log.gz")

    def test_a_closed_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", None)
        with pytest.raises(CtxlockError, match="Standard input cannot be read: it is closed"):
            examine(["-"])

    def test_what_is_missing(self, tmp_path: Path) -> None:
        with pytest.raises(CtxlockError, match=r"missing\.log cannot be read: No such file"):
            examine([str(tmp_path / "missing.log")])
        with pytest.raises(CtxlockError, match="is a folder"):
            examine([str(tmp_path)])

    @pytest.mark.parametrize("content", ["", "hello\n", '{"message": "hello"}\n', "\x00\xff\n" * 9])
    def test_no_such_log(self, content: str, told: Told) -> None:
        with pytest.raises(CtxlockError, match=r"LK_OPENAI_DEBUG=1.*DEBUG"):
            told(content.encode())


class TestDamage:
    def test_cut_off_and_mixed_lines_are_counted_and_skipped(self, told: Told) -> None:
        lines = lines_of(losing())
        lines.insert(5, lines[4][: len(lines[4]) * 2 // 3])
        lines.insert(5, '{"message": ">>>", "lk.pii.event": {"type": "conversation.item.cre')
        lines.insert(5, '{"message": "hello')
        lines.insert(5, lines_of(keeping("b"))[-1] * 2)
        found = told(lines)
        assert judged(found) == [(STRONG, "text turn during a tool output")]
        assert found.counts.damaged == 3
        assert [where.line for where in found.counts.samples] == [6, 8, 9]

    @pytest.mark.parametrize("form", FORMS)
    def test_no_cut_is_fatal(self, form: str, told: Told) -> None:
        line = FORMS[form](losing().written[3])
        found = told([*(line[:end] for end in range(len(line))), *lines_of(losing())])
        assert found.counts.damaged > 0

    def test_what_looks_like_a_number_is_no_warning(self, told: Told) -> None:
        line = old_production(losing().written[0]).replace("'sess_'", "1_0if")
        assert told([line, *lines_of(losing())]).counts.damaged == 1

    @pytest.mark.parametrize("event", [{}, {"type": 3}, {"type": None}, {"type": []}])
    def test_events_of_no_kind(self, event: Any, told: Told) -> None:
        odd = production((START, "<<<", event))
        found = told([odd, *lines_of(losing())])
        assert found.counts.damaged == 1
        assert found.lost

    def test_fields_of_another_type(self, told: Told) -> None:
        kinds = sorted({event["type"] for _, _, event in losing().written})
        odd: list[Any] = [None, 3, "x", [], [1], {}, {"id": 3}, {"id": []}, {"output": [1, None]}]
        keys = ("item", "item_id", "previous_item_id", "response", "error", "session", "event_id")
        lines = lines_of(losing())
        for kind, key, value, arrow in itertools.product(
            [*kinds, "error"], keys, odd, (">>>", "<<<")
        ):
            lines.append(production((START + 9, arrow, {"type": kind, key: value})))
        assert told(lines).counts.damaged == 0

    def test_a_beginning_that_is_missing_is_said_to_be(self, told: Told) -> None:
        lines = lines_of(losing(), job_id="AJ_1")
        call = told(lines[8:]).calls[0]
        assert not call.complete
        assert told(lines).calls[0].complete


class TestCalls:
    @pytest.mark.parametrize("fields", [("job_id",), ("room",), ("job_id", "room"), ("pid",)])
    def test_interleaved_calls_are_told_apart(self, fields: tuple[str, ...], told: Told) -> None:
        def named(prefix: str, number: int) -> list[str]:
            script = (losing if number % 3 == 0 else keeping)(prefix)
            values: dict[str, Any] = {
                field: number if field == "pid" else f"{field}-{number}" for field in fields
            }
            return lines_of(script, **values)

        each = [named(f"{n}_", n) for n in range(9)]
        mixed = [line for row in itertools.zip_longest(*each) for line in row if line]
        found = told(mixed)
        assert found.totals.calls == 9
        assert judged(found) == [(STRONG, "text turn during a tool output")] * 3

    def test_calls_that_only_their_ids_tell_apart(self, told: Told) -> None:
        one, other = lines_of(losing("a")), lines_of(losing("b"))
        both = itertools.zip_longest(one[4:], other)  # the second begins when the first is there
        lines = one[:4] + [line for pair in both for line in pair if line]
        found = losses(told(lines))
        assert [(x.grade, x.item.id[:6]) for x in found] == [(STRONG, "item_a"), (STRONG, "item_b")]

    def test_one_after_the_other_in_one_process(self, told: Told) -> None:
        found = told(lines_of(losing("a")) + lines_of(keeping("b")) + lines_of(losing("c")))
        assert found.totals.calls == 3
        assert len(judged(found)) == 2

    def test_many_calls_are_not_all_kept(self, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(calls_module, "OPEN", 4)
        each = [lines_of(keeping(f"{n}_"), job_id=f"AJ_{n}") for n in range(50)]
        found = told([line for lines in each for line in lines])
        assert found.totals.calls == 50
        assert found.calls == []

    def test_a_summary(self, told: Told) -> None:
        each = [(losing if n == 1 else keeping)(f"{n}_") for n in range(3)]
        lines = [x for n, script in enumerate(each) for x in lines_of(script, job_id=f"AJ_{n}")]
        waited = {
            "message": "a realtime context update waited for another one",
            "site": "_realtime_reply_task, line 12",
            "waited_for": "_tts_task_impl, line 3",
            "seconds": 0.25,
            "job_id": "AJ_2",
            "timestamp": "2026-09-21T14:13:21+00:00",
        }
        found = told([*lines, json.dumps(waited)])
        said = [
            "1 of 3 calls lost an item of the conversation; 1 had updates that waited for others."
        ]
        assert list(sentences(found)) == said
        text = [x for call in found.calls for x in call_lines(found, call, details=True)]
        words = (
            "waited: text turn (_realtime_reply_task, line 12) waited 250 ms "
            "for spoken message (_tts_task_impl, line 3), "
        )
        assert any(words in line for line in text)


class TestPrivacy:
    def secret(self) -> Script:
        script = Script()
        output = script.looked_up(SECRET, arguments=json.dumps({"said": SECRET}))
        script.update(script.message(SECRET), delete=(output,))
        script.replied(SECRET)
        return script

    def shown(self, found: Examination) -> str:
        from ctxlock.doctor.drawing import page

        text = "\n".join(x for c in found.calls for x in call_lines(found, c, details=True))
        return text + as_json(found) + page(found)

    def test_texts_are_neither_shown_nor_kept(self, told: Told) -> None:
        for form in (production, old_production):
            found = told(lines_of(self.secret(), form))
            assert found.lost
            assert "5551234" not in self.shown(found)
            assert "5551234" not in repr(found)

    def test_texts_are_shown_if_asked_for(self, told: Told) -> None:
        shown = self.shown(told(lines_of(self.secret()), with_text=True))
        assert shown.count(SECRET) == 3


class TestTroubles:
    def kinds(self, found: Examination) -> list[str]:
        return [trouble.kind for call in found.calls for trouble in call.troubles]

    def test_a_refused_deletion_is_no_loss(self, told: Told) -> None:
        script = Script()
        output = script.looked_up()
        asked = script.asks(script.message(), delete=(output,))
        event_id = script.written[-2][2]["event_id"]
        error = {"code": "item_delete_invalid_item_id", "event_id": event_id}
        script.received("error", error=error)
        script.answers(asked[1:])
        found = told(script)
        assert losses(found) == []
        assert self.kinds(found) == ["refused"]

    def test_a_deletion_that_nobody_confirms_is_weak(self, told: Told) -> None:
        script = Script()
        output = script.looked_up()
        script.answers(script.asks(script.message(), delete=(output,))[1:])
        assert only(told(script)).grade == WEAK

    def test_what_was_lost_and_comes_again(self, told: Told) -> None:
        script = losing()
        call = next(e["item"] for _, _, e in script.written if "call_id" in e.get("item", {}))
        output = {**script.output(call), "id": only(told(script)).item.id}
        script.update(output)
        loss = only(told(script))
        assert loss.restored is not None

    def test_slow_and_missing_acknowledgements(self, told: Told) -> None:
        script = Script()
        for _ in range(3):
            script.update(script.message())
        script.answers(script.asks(script.message()), after=3.0)
        script.asks(script.message())
        script.pause(6.0)
        script.update(script.message())
        assert self.kinds(told(script)) == ["slow", "unanswered"]

    def test_an_output_that_was_never_sent(self, told: Told) -> None:
        script = Script()
        script.called()
        script.replied()
        assert self.kinds(told(script)) == ["no output"]

    def reconnected(self, script: Script, kept: dict[str, Any]) -> list[str]:
        """The lines until a reconnection that replays an item; the script goes on from there."""
        remark = {"message": "reconnecting to OpenAI Realtime API", "pid": 7}
        before = [*lines_of(script), json.dumps(remark)]
        script.written.clear()
        script.received("session.created", session={})
        script.answers([("create", kept)])
        return before

    def test_a_reconnection_and_what_it_does_not_repeat(self, told: Told) -> None:
        script = Script()
        kept, system = script.message(), script.message("be brief", role="system")
        script.update(kept, system)
        before = self.reconnected(script, kept)
        script.update(script.message())
        found = told([*before, *lines_of(script)])
        assert self.kinds(found) == ["reconnection", "not repeated"]
        assert found.calls[0].troubles[1].text.endswith("1 system message")
        again = told([*before, *lines_of(script), *lines_of(keeping("c"))])
        assert again.totals.calls == 2

    def test_what_was_to_be_deleted_and_is_back_with_the_connection(self, told: Told) -> None:
        script = Script()
        unwanted = script.message()
        script.update(unwanted)
        script.asks(delete=(unwanted,))
        before = self.reconnected(script, unwanted)
        found = told([*before, *lines_of(script)])
        assert self.kinds(found) == ["reconnection"]
        loss = only(found)
        assert (loss.kind, loss.grade) == ("back", STRONG)
        assert "LOST" not in "\n".join(call_lines(found, found.calls[0], details=True))
        script.update(delete=(unwanted,))  # again, and this time it is confirmed
        found = told([*before, *lines_of(script)])
        assert all(loss.grade != STRONG for loss in losses(found))

    def test_an_output_whose_call_was_deleted(self, told: Told) -> None:
        script = Script()
        script.update(script.message())
        call = script.called()
        script.pause(2.0)
        script.update(script.message(), delete=(call,))
        script.pause(2.0)
        script.update(script.output(call))
        found = told(script)
        assert [t.text for t in found.calls[0].troubles] == [
            "the output of lookup is sent, and its call was deleted"
        ]
        assert not found.lost


class Begun(Script):
    """A call with a message, and a tool's call and its result."""

    def __init__(self) -> None:
        super().__init__()
        self.first = self.message("good day")
        self.update(self.first)
        self.call = self.called()
        self.result = self.output(self.call)
        self.update(self.result)


def grades(script: Script, told: Told) -> list[str]:
    return [loss.grade for loss in losses(told(script))]


class TestGrades:
    """What else a deletion may be; each differs from a loss in one thing."""

    @pytest.mark.parametrize(
        ("update", "expected"),
        [
            pytest.param(
                lambda s: s.update(s.message(), delete=(s.result,)), [STRONG], id="a loss"
            ),
            pytest.param(
                lambda s: s.update(s.message(), delete=(s.first, s.result)),
                [EXPLAINED, WEAK],
                id="with something older",
            ),
            pytest.param(
                lambda s: s.update(s.message(), delete=(s.call, s.result)),
                [WEAK, WEAK],
                id="with its call",
            ),
            pytest.param(lambda s: s.update(delete=(s.result,)), [WEAK], id="without anything new"),
            pytest.param(
                lambda s: s.update(s.message("a"), s.message("b"), delete=(s.result,)),
                [WEAK],
                id="with several new items",
            ),
            pytest.param(
                lambda s: s.update(s.first, delete=(s.first,)),
                [],
                id="of what is created anew under its id",
            ),
        ],
    )
    def test_a_deletion(
        self, update: Callable[[Begun], None], expected: list[str], told: Told
    ) -> None:
        script = Begun()
        update(script)
        assert grades(script, told) == expected

    @pytest.mark.parametrize("round_trip", [0.001, 0.02, 0.3, 1.5, 4.0])
    def test_a_loss_far_away_or_near(self, round_trip: float, told: Told) -> None:
        script = Script()
        script.answers(script.asks(script.message()), round_trip)
        output = script.output(script.called())
        script.answers(script.asks(output), round_trip)
        script.answers(script.asks(script.message(), delete=(output,)), round_trip)
        assert grades(script, told) == [STRONG]

    @pytest.mark.parametrize("round_trip", [0.001, 0.02, 0.3, 1.5, 4.0])
    def test_meant_far_away_or_near(self, round_trip: float, told: Told) -> None:
        script = Script()
        output = script.output(script.called())
        script.answers(script.asks(output), round_trip)
        script.pause(1.0)
        script.answers(script.asks(script.message(), delete=(output,)), round_trip)
        assert STRONG not in grades(script, told)

    @pytest.mark.parametrize("seconds", [0.1, 0.5, 0.9])
    def test_later_than_a_round_trip(self, seconds: float, told: Told) -> None:
        script = Begun()
        script.pause(seconds)
        script.update(script.message(), delete=(script.result,))
        assert grades(script, told) == [WEAK]

    def test_after_a_reply(self, told: Told) -> None:
        script = Begun()
        script.replied()
        script.pause(2.0)
        script.update(script.message(), delete=(script.result,))
        assert grades(script, told) == [EXPLAINED]

    def test_at_a_handoff(self, told: Told) -> None:
        script = Begun()
        script.sent("session.update", session={"instructions": "Go on."})
        deleted = (script.first, script.call, script.result)
        script.update(script.message("They called."), delete=deleted)
        assert grades(script, told) == [EXPLAINED] * 3

    def test_a_callers_turn(self, told: Told) -> None:
        script = Begun()
        script.replied()
        turn = script.heard()
        script.update(script.message("note"), delete=(turn,))
        assert grades(script, told) == [STRONG]

    @pytest.mark.parametrize(
        ("words", "seconds", "grade"), [("", 0.0, STRONG), ("", 0.2, WEAK), ("hello", 0.0, WEAK)]
    )
    def test_a_callers_turn_that_a_handoff_deletes(
        self, words: str, seconds: float, grade: str, told: Told
    ) -> None:
        script = Begun()
        script.replied()
        script.pause(2.0)
        turn = script.heard()
        if words:
            kind = "conversation.item.input_audio_transcription.completed"
            script.received(kind, item_id=turn["id"], transcript=words)
        script.pause(seconds)
        script.sent("session.update", session={"instructions": "Go on."})
        script.update(delete=(turn,))
        expected = EXPLAINED if seconds else grade
        assert grades(script, told) == [expected]

    def test_a_callers_turn_beside_older_items_that_are_to_go(self, told: Told) -> None:
        script = Begun()
        script.pause(2.0)
        note = script.asks(script.message())
        script.pause(0.06)
        turn = script.heard()
        script.answers(note, after=0.0)
        script.update(delete=(script.first, turn))
        assert grades(script, told) == [EXPLAINED, STRONG]

    @pytest.mark.parametrize(
        ("seconds", "cancelled", "finished", "grade"),
        [
            (0.0, False, True, STRONG),
            (0.0, True, True, WEAK),
            (0.0, False, False, WEAK),
            (2.0, False, True, WEAK),
        ],
    )
    def test_a_reply_that_the_model_is_still_making(
        self, seconds: float, cancelled: bool, finished: bool, grade: str, told: Told
    ) -> None:
        script = Begun()
        script.pause(2.0)
        script.replied()
        *script.written, spoken, done = script.written
        reply = spoken[2]["item"]
        script.pause(seconds)
        if cancelled:
            script.sent("response.cancel")
        script.update(script.message(), delete=(reply,))
        if finished:
            script.written += [(script.now, *spoken[1:]), (script.now, *done[1:])]
        assert grades(script, told) == [grade]

    def test_a_deletion_that_is_taken_back_by_the_next(self, told: Told) -> None:
        script = Begun()
        script.pause(3.0)
        script.update(delete=(script.first,))
        script.update(script.first, script.message())
        assert [x.kind for x in losses(told(script)) if x.grade == STRONG] == ["back"]

    def test_a_weak_deletion_that_is_taken_back_by_the_next(self, told: Told) -> None:
        script = Begun()
        script.update(delete=(script.result,))
        script.update(script.result, script.message())
        found = losses(told(script))
        assert [(x.kind, x.grade) for x in found] == [("lost", WEAK), ("back", STRONG)]

    def test_an_update_behind_one_that_is_never_answered_in_full(self, told: Told) -> None:
        script = Begun()
        note = script.message("A")
        script.answers(script.asks(note, script.message("B"))[:1])
        script.update(script.message("C"), delete=(note,))
        assert grades(script, told) == [STRONG]

    def test_a_handoff_behind_updates_that_wait(self, told: Told) -> None:
        script = Script()
        script.pause(1.0)
        notes = script.message("A"), script.message("B")
        asked = script.asks(notes[0])
        script.sent("session.update", session={"instructions": "Go on."})
        script.answers(asked)
        script.update(notes[1])
        script.update(delete=notes)
        assert grades(script, told) == [EXPLAINED, EXPLAINED]

    def test_a_reply_that_began_before_tells_nothing(self, told: Told) -> None:
        script = Begun()
        script.received("response.created", response={"id": "resp_0", "status": "in_progress"})
        script.update(script.message(), delete=(script.result,))
        part = {"id": "item_0", "type": "message", "role": "assistant", "content": []}
        done = {"id": "resp_0", "status": "completed", "output": [part]}
        script.received("response.done", response=done)
        assert only(told(script)).aftermath == []
        script.replied()
        assert [how for how, _ in only(told(script)).aftermath] == ["the model replied without it"]

    def test_an_empty_id_acknowledges_the_oldest_deletion(self, told: Told) -> None:
        script = Begun()
        asked = script.asks(script.message(), delete=(script.result,))
        script.pause(0.06)
        script.received("conversation.item.deleted", item_id="")
        script.answers(asked[1:])
        assert grades(script, told) == [STRONG]


def _while_a_note_waits(*, done: bool) -> Script:
    """The model calls a tool while a note awaits its acknowledgement, and a typed turn that."""
    script = Script()
    note = script.asks(script.message("a member"))
    call = script.called()
    if not done:
        script.written.pop()
    script.answers(note)
    script.update(script.message(), delete=(note[0][1], call))
    return script


@pytest.mark.parametrize(("done", "grade"), [(True, STRONG), (False, WEAK)])
def test_a_call_of_a_whole_response_that_an_update_deletes(
    done: bool, grade: str, told: Told
) -> None:
    found = told(lines_of(_while_a_note_waits(done=done)))
    (report,) = found.calls
    assert {loss.item.kind: loss.grade for loss in report.losses} == {
        "message": STRONG,
        "function_call": grade,
    }
