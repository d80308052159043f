"""What the scope `full` does to items: plain functions, and the calls that use them.

Nothing of it may move what the agent has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from added_module import added_module, ids, user
from hypothesis import given, strategies as st

from livekit.agents import llm

full: Any = added_module()

NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True)


def users(names: Iterable[str]) -> list[llm.ChatItem]:
    return [user(name) for name in names]


def picture(*words: str) -> llm.ChatMessage:
    return llm.ChatMessage(role="user", content=[llm.ImageContent(image="data:"), *words])


def among(items: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """Those of `items` that are wanted, in their order."""
    chosen = set(wanted)
    return [item for item in items if item in chosen]


def call(name: str) -> llm.FunctionCall:
    return llm.FunctionCall(id=f"call {name}", call_id=name, name="tool", arguments="{}")


def output(name: str) -> llm.FunctionCallOutput:
    return llm.FunctionCallOutput(
        id=f"output {name}", call_id=name, name="tool", output="", is_error=False
    )


@pytest.mark.parametrize(
    ("item", "says", "by_provider"),
    [
        pytest.param(user("a"), True, False, id="text"),
        pytest.param(user("a", ""), False, True, id="nothing"),
        pytest.param(
            llm.ChatMessage(id="a", role="assistant", content=[""]), False, True, id="empty-text"
        ),
        pytest.param(picture(), True, True, id="picture"),
        pytest.param(picture("what is this?"), True, False, id="picture-and-text"),
        pytest.param(call("x"), True, True, id="call"),
        pytest.param(output("x"), True, False, id="output"),
    ],
)
def test_content(item: llm.ChatItem, says: bool, by_provider: bool) -> None:
    assert full.has_content(item) is says
    assert full.is_by_provider(item) is by_provider


@pytest.mark.parametrize(
    ("pending", "end"),
    [("", 3), ("c", 2), ("bc", 1), ("abc", 0), ("ab", 3), ("ac", 2)],
)
def test_end_before_what_is_pending(pending: str, end: int) -> None:
    assert full.end_before(users("abc"), set(pending)) == end


class TestPlaceAs:
    @pytest.mark.parametrize(
        ("own", "target", "added", "placed"),
        [
            pytest.param("abx", "abx", "x", "abx", id="at-the-end-on-both-sides"),
            pytest.param("axb", "abx", "x", "axb", id="in-front-of-what-came-later"),
            pytest.param("abx", "axb", "x", "abx", id="behind-what-came-before"),
            pytest.param("axyb", "abxy", "xy", "axyb", id="two-together"),
            pytest.param("ab", "abx", "x", "abx", id="unknown-to-the-agent"),
            pytest.param("xcd", "abx", "x", "abx", id="nothing-in-common"),
            pytest.param("ab", "axb", "x", "axb", id="unknown-to-the-agent-in-the-middle"),
            pytest.param("axb", "axyb", "x", "axyb", id="in-front-of-what-the-agent-lacks"),
            pytest.param("abx", "abxx", "x", "abx", id="there-already"),
            pytest.param("axb", "axbx", "x", "axb", id="there-already-in-its-place"),
        ],
    )
    def test_cases(self, own: str, target: str, added: str, placed: str) -> None:
        items = users(target)
        full.place_as(users(own), items, users(added))
        assert "".join(ids(items)) == placed

    @given(NAMES, NAMES, st.integers(0, 8), st.sampled_from([["x"], ["x", "y"]]))
    def test_nothing_else_is_moved(
        self, own: list[str], others: list[str], at: int, added: list[str]
    ) -> None:
        target = users([*others[:at], *added, *others[at:]])
        full.place_as(users([*own, *added]), target, users(added))
        assert among(ids(target), others) == others
        first = ids(target).index("x")
        assert ids(target)[first : first + len(added)] == added

    @given(st.permutations("abcdefgh"), st.integers(0, 8), NAMES)
    def test_what_agrees_stays(self, order: list[str], at: int, known: list[str]) -> None:
        own = [*order[:at], "x", *order[at:]]
        target = users(among(own, [*known, "x"]))
        full.place_as(users(own), target, users("x"))
        assert ids(target) == among(own, [*known, "x"])

    @given(st.permutations("abcdefgh"), st.integers(0, 8), st.integers(0, 8), NAMES)
    def test_both_sides_agree_afterwards(
        self, order: list[str], at: int, elsewhere: int, known: list[str]
    ) -> None:
        own = [*order[:at], "x", *order[at:]]
        others = among(order, known)
        target = users([*others[:elsewhere], "x", *others[elsewhere:]])
        full.place_as(users(own), target, users("x"))
        assert ids(target) == among(own, ids(target))


class TestRecord:
    @given(st.lists(st.floats(0, 9), max_size=6), st.floats(0, 9))
    def test_by_its_time_and_nothing_is_moved(self, times: list[float], at: float) -> None:
        items: list[llm.ChatItem] = [user(str(n), at=time) for n, time in enumerate(times)]
        before = ids(items)
        full.record(items, user("x", at=at))
        assert among(ids(items), before) == before
        behind = items[ids(items).index("x") + 1 :]
        assert all(item.created_at > at for item in behind)

    @given(NAMES.filter(bool), st.data())
    def test_in_its_own_place(self, names: list[str], data: st.DataObject) -> None:
        items, name = users(names), data.draw(st.sampled_from(names))
        newer = user(name, "newer", at=99.0)
        full.record(items, newer)
        assert ids(items) == names and newer in items


class TestComingAlong:
    OLD: Sequence[llm.ChatItem] = [
        call("x"),
        user("before"),
        user("speech"),
        output("x"),
        llm.ChatMessage(id="reply", role="assistant", content=["yes"]),
    ]

    def brought(self, new: Sequence[llm.ChatItem], noted: Iterable[str], back: bool) -> list[str]:
        return ids(full.coming_along(self.OLD, new, set(noted), back=back))

    def test_only_what_was_noted(self) -> None:
        assert self.brought([call("x")], [], back=True) == []

    def test_output_if_its_call_is_there(self) -> None:
        assert self.brought([call("x")], ["output x"], back=False) == ["output x"]
        assert self.brought([], ["output x"], back=False) == []

    def test_later_report_if_the_first_call_is_there(self) -> None:
        old = [item(name) for name in ("x", "x_final", "xy") for item in (call, output)]
        noted = {item.id for item in old[2:]}
        found = full.coming_along(old, [call("x"), output("x")], noted, back=False)
        assert ids(found) == ["call x_final", "output x_final"]
        assert full.coming_along(old, [], noted, back=False) == []

    def test_reply_of_a_task_alone(self) -> None:
        assert self.brought([], ["reply"], back=True) == ["reply"]
        assert self.brought([], ["reply"], back=False) == []

    def test_what_the_user_said_unless_it_is_there(self) -> None:
        assert self.brought([], ["speech"], back=False) == ["speech"]
        assert self.brought([user("speech")], ["speech"], back=False) == []
        assert self.brought([user("speech", "")], ["speech"], back=False) == ["speech"]

    @given(st.permutations(["before", "speech", "output x", "reply"]))
    def test_in_the_agents_order(self, noted: list[str]) -> None:
        found = self.brought([call("x")], noted, back=True)
        assert found == ["before", "speech", "output x", "reply"]


class TestPutBack:
    @pytest.mark.parametrize(
        ("remote", "own", "wanted", "after"),
        [
            pytest.param("ac", "abc", "b", "abc", id="between"),
            pytest.param("bc", "abc", "a", "abc", id="in-front"),
            pytest.param("a", "abc", "bc", "abc", id="several"),
            pytest.param("abc", "abc", "abc", "abc", id="nothing-lacks"),
            pytest.param("ac", "abc", "", "ac", id="nothing-wanted"),
            pytest.param("axc", "abc", "b", "abxc", id="beside-what-the-agent-lacks"),
            pytest.param("ax", "ab", "b", "axb", id="at-the-end-behind-what-the-agent-lacks"),
        ],
    )
    def test_cases(self, remote: str, own: str, wanted: str, after: str) -> None:
        items = users(remote)
        lacked = full.put_back(items, users(own), set(wanted))
        assert "".join(ids(items)) == after and lacked is (after != remote)

    @given(NAMES, NAMES, NAMES)
    def test_nothing_is_moved_or_doubled(
        self, remote: list[str], own: list[str], wanted: list[str]
    ) -> None:
        items = users(remote)
        full.put_back(items, users(own), set(wanted))
        assert among(ids(items), remote) == remote
        assert set(ids(items)) == {*remote, *(name for name in own if name in wanted)}
        assert len(ids(items)) == len(set(ids(items)))


class TestApart:
    @pytest.mark.parametrize(
        ("had", "kept", "gone", "new"),
        [
            pytest.param("abc", "abc", "", "", id="the-same"),
            pytest.param("", "abc", "", "abc", id="from-nothing"),
            pytest.param("abc", "", "abc", "", id="to-nothing"),
            pytest.param("abc", "abcd", "", "d", id="added"),
            pytest.param("abcd", "cd", "ab", "", id="trimmed"),
            pytest.param("abcd", "axd", "bc", "x", id="in-the-middle"),
            pytest.param("abcd", "dcba", "", "", id="in-another-order"),
            pytest.param("abc", "xyz", "abc", "xyz", id="nothing-in-common"),
        ],
    )
    def test_cases(self, had: str, kept: str, gone: str, new: str) -> None:
        every = {name: user(name) for name in {*had, *kept}}
        found = full.apart([every[name] for name in had], [every[name] for name in kept])
        assert ["".join(some) for some in found] == [gone, new]

    def test_an_object_of_its_own_is_on_both_sides(self) -> None:
        gone, new = full.apart(users("abc"), users("abc"))
        assert [*gone] == [*new] == ["a", "b", "c"]

    @given(NAMES, NAMES)
    def test_as_sets_say(self, had: list[str], kept: list[str]) -> None:
        every = {name: user(name) for name in "abcdefgh"}
        gone, new = full.apart([every[name] for name in had], [every[name] for name in kept])
        assert gone == {name: every[name] for name in had if name not in kept}
        assert new == {name: every[name] for name in kept if name not in had}


@pytest.mark.parametrize(
    ("item", "unconfirmed", "expected"),
    [
        pytest.param(user("a"), [], False, id="plugin-repeats-it"),
        pytest.param(user("a"), ["a"], True, id="never-confirmed"),
        pytest.param(
            llm.ChatMessage(id="a", role="system", content=["rule"]), [], True, id="system-message"
        ),
    ],
)
def test_what_no_plugin_repeats(
    item: llm.ChatItem, unconfirmed: Sequence[str], expected: bool
) -> None:
    assert full.unrepeated([item], unconfirmed) == ([item] if expected else [])


class TestTell:
    """What the provider tells of, on a lock whose activity has nothing but an agent."""

    def lock(self, items: Sequence[llm.ChatItem]) -> Any:
        agent = SimpleNamespace(_chat_ctx=llm.ChatContext(list(items)))
        self.activity = SimpleNamespace(
            _rt_session=None, _agent=agent, _session=SimpleNamespace(_agent=agent)
        )
        return full.RealtimeContextLock(self.activity)

    def tell(self, lock: Any, item: llm.ChatItem, behind: str | None) -> bool:
        event = llm.RemoteItemAddedEvent(previous_item_id=behind, item=item)
        dealt_with: bool = lock.tell(event)
        return dealt_with

    def items(self) -> list[str]:
        return ids(self.activity._agent._chat_ctx.items)

    def test_stock_appends_what_comes_at_the_end(self) -> None:
        lock = self.lock(users("ab"))
        assert not self.tell(lock, user("c", ""), "b")
        assert self.items() == ["a", "b"]

    def test_placeholder_behind_something_else_goes_to_the_end(self) -> None:
        lock = self.lock(users("ab"))
        assert self.tell(lock, user("c", ""), "a")
        assert self.items() == ["a", "b", "c"]

    def test_message_with_content_is_left_to_its_sender(self) -> None:
        lock = self.lock(users("ab"))
        assert self.tell(lock, user("c"), "a")
        assert self.items() == ["a", "b"]

    async def test_typed_turn_is_recorded_when_the_span_around_another_fails(self) -> None:
        lock = self.lock(users("a"))
        with pytest.raises(llm.RealtimeError):
            async with lock:
                lock.typing(llm.ChatContext([]), user("typed", at=1.0))
                async with lock:
                    pass
                raise llm.RealtimeError("not acknowledged")
        assert self.items() == ["a", "typed"]

    @pytest.mark.parametrize("back", [False, True], ids=["next-agent", "parent"])
    def test_what_the_user_says_while_a_handoff_drains_goes_along(self, back: bool) -> None:
        lock = self.lock([])
        leaving, following = self.activity._agent, SimpleNamespace(_chat_ctx=llm.ChatContext([]))
        if back:
            leaving._old_agent = following
        self.activity._session._agent = following
        reply = llm.ChatMessage(id="reply", role="assistant", content=[])
        for item in (user("said", ""), reply, call("x")):
            assert not self.tell(lock, item, None)
            leaving._chat_ctx.items.append(item)  # as the activity does
        lock.hand_over(SimpleNamespace(_agent=following), None)
        assert ids(following._chat_ctx.items) == ["said"]

    @given(NAMES, st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("abcdefgh"))))
    def test_nothing_that_the_agent_has_is_moved(
        self, names: list[str], told: list[tuple[str, str]]
    ) -> None:
        lock = self.lock(users(names))
        for name, behind in told:
            before = self.items()
            self.tell(lock, user(name, ""), behind)
            assert among(self.items(), before) == before
            assert len(set(self.items())) == len(self.items())
