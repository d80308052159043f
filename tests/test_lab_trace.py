from __future__ import annotations

from lab.trace import Names, Recorder

ONE, TWO = "0123456789ab", "ba9876543210"


def lines(*facts: object, channel: str = "frames") -> list[str]:
    recorder = Recorder()
    for fact in facts:
        recorder.note(channel, fact)
    return recorder.trace("done").channels[channel]


def test_the_random_part_of_an_id_becomes_a_name_and_its_prefix_stays() -> None:
    assert lines({"id": f"item_{ONE}"}) == ['0.000 {"id": "item_<item 1>"}']


def test_runs_with_other_ids_have_the_same_trace() -> None:
    assert lines(f"item_{ONE}", f"item_{TWO}") == lines(f"item_{TWO}", f"item_{ONE}")


def test_an_id_has_one_name_in_all_channels() -> None:
    recorder = Recorder()
    recorder.note("frames", f"item_{TWO}")
    recorder.note("frames", f"item_{ONE}")
    recorder.note("context", f"item_{ONE}")
    assert recorder.trace("done").channels["context"] == ["0.000 item_<item 2>"]


def test_two_ids_are_not_taken_for_one() -> None:
    assert lines(f"item_{ONE}", f"item_{ONE}") != lines(f"item_{ONE}", f"item_{TWO}")


def test_a_random_part_is_known_behind_another_prefix() -> None:
    same = lines(f"item_{ONE}", f"msg_{ONE}")
    assert same == ["0.000 item_<item 1>", "0.000 msg_<item 1>"]
    assert same != lines(f"item_{ONE}", f"msg_{TWO}")


def test_one_more_id_of_a_kind_renames_no_other_kind() -> None:
    fewer = lines(f"item_{ONE}", "speech_aaaaaaaaaaaa")
    more = lines(f"item_{ONE}", f"item_{TWO}", "speech_aaaaaaaaaaaa")
    assert more == [*fewer[:1], "0.000 item_<item 2>", *fewer[1:]]


def test_order_and_doubling_are_kept() -> None:
    assert lines("first", "second") != lines("second", "first")
    assert lines("once") != lines("once", "once")


def test_order_between_channels_is_kept() -> None:
    orders = []
    for channels in (("frames", "events"), ("events", "frames")):
        recorder = Recorder()
        for channel in channels:
            recorder.note(channel, channel)
        orders.append(recorder.trace("done"))
    assert orders[0].channels == orders[1].channels
    assert orders[0].order != orders[1].order


def test_what_is_later_on_the_virtual_clock_is_seen() -> None:
    now = 5.0
    recorder = Recorder(lambda: now)
    recorder.note("frames", "a")
    now = 5.25
    recorder.note("frames", "a")
    assert recorder.trace("done").channels["frames"] == ["0.000 a", "0.250 a"]


def test_a_fact_stays_as_it_was() -> None:
    recorder = Recorder()
    item = {"content": ["Hello"]}
    recorder.note("context", item)
    item["content"].append("there")
    assert recorder.trace("done").channels["context"] == ['0.000 {"content": ["Hello"]}']


def test_times_of_the_wall_clock_are_dropped_and_nothing_else() -> None:
    fact = {"created_at": 1.5, "text": "created_at", "audio_end_ms": 100}
    assert Names().clean(fact) == {"text": "created_at", "audio_end_ms": 100}


def test_uuids_addresses_and_ports_are_random_too() -> None:
    names = Names()
    uuid = "01234567-89ab-cdef-0123-456789abcdef"
    assert names.clean(f"{uuid} {uuid}") == "<id 1> <id 1>"
    assert names.clean("<Task at 0x7f0123456789>") == "<Task at <object 1>>"
    assert names.clean("ws://127.0.0.1:43210/v1") == "ws://127.0.0.1:port/v1"


def test_counted_ids_of_a_far_end_and_words_are_left_alone() -> None:
    text = "srv_item_12 call_0 deadbeef facade 0.25 {'a': 1}"
    assert Names().clean(text) == text


def test_nothing_is_taken_down_after_the_end() -> None:
    recorder = Recorder()
    recorder.note("frames", "a")
    recorder.stop()
    recorder.note("frames", "b")
    assert recorder.trace("done").order == ["frames"]
