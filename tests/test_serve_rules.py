from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ctxlock.errors import CtxlockError
from ctxlock.races.loopback.items import FunctionCall, FunctionCallOutput, Item, Message
from ctxlock.serve.answers import Call, Script
from ctxlock.serve.rules import Rule, read_rules

GOOD = """
[[rule]]
when = 'booking (\\w+)'
call = "look_up"
arguments = { number = "A17", nights = 2 }

[[rule]]
when = "thank"
say = "You are welcome."
"""


def rules(text: str, folder: Path) -> list[Rule]:
    path = folder / "rules.toml"
    path.write_text(text, encoding="utf-8")
    return read_rules(path)


class TestFile:
    def test_reads(self, tmp_path: Path) -> None:
        first, second = rules(GOOD, tmp_path)
        assert (first.call, first.arguments) == ("look_up", {"number": "A17", "nights": 2})
        assert first.when.search("my BOOKING A17") and first.say is None
        assert (second.say, second.call) == ("You are welcome.", None)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            pytest.param("[[rule]]\nwhen = x\n", "no valid TOML: .*line 2", id="no TOML"),
            pytest.param("", "there is no rule; expected", id="empty"),
            pytest.param("rule = 1", "there is no rule; expected", id="no tables"),
            pytest.param("rule = [1]", "rule 1: expected a .* found 1", id="no table"),
            pytest.param("[[rules]]\n", "unknown key 'rules'", id="another table"),
            pytest.param('[[rule]]\nsays = "x"', "rule 1: unknown key 'says'; exp", id="key"),
            pytest.param('[[rule]]\nsay = "x"', "rule 1: 'when' is missing", id="no when"),
            pytest.param('[[rule]]\nwhen = "x"', "found neither", id="nothing to do"),
            pytest.param(
                '[[rule]]\nwhen = "x"\nsay = "x"\ncall = "x"', "found both", id="both to do"
            ),
            pytest.param('[[rule]]\nwhen = "x"\nsay = 1', "'say' must be a text, not 1", id="type"),
            pytest.param('[[rule]]\nwhen = ""\nsay = "x"', "'when' must be a text", id="blank"),
            pytest.param('[[rule]]\nwhen = "("\nsay = "x"', "no regular expr.*: miss", id="regex"),
            pytest.param(
                '[[rule]]\nwhen = "x"\ncall = "x"\narguments = 1', "must be a table", id="arguments"
            ),
            pytest.param(
                '[[rule]]\nwhen = "x"\nsay = "x"\narguments = {}', "there is none", id="no call"
            ),
            pytest.param(f"{GOOD}[[rule]]\nwhen = 1", "rule 3: 'when' must be", id="the third"),
            pytest.param(
                '[[rule]]\nwhen = "x"\ncall = "x"\narguments = { on = 2026-11-29 }',
                "rule 1: 'arguments' .* JSON",
                id="a date",
            ),
            pytest.param(
                '[[rule]]\nwhen = "x"\ncall = "x"\narguments = { on = nan }',
                "rule 1: 'arguments' .* JSON",
                id="no number",
            ),
        ],
    )
    def test_refuses(self, text: str, said: str, tmp_path: Path) -> None:
        with pytest.raises(CtxlockError, match=rf"rules\.toml.*{said}"):
            rules(text, tmp_path)

    def test_cannot_be_read(self, tmp_path: Path) -> None:
        with pytest.raises(CtxlockError, match=r"none\.toml could not be read: No such file"):
            read_rules(tmp_path / "none.toml")

    def test_another_encoding(self, tmp_path: Path) -> None:
        path = tmp_path / "rules.toml"
        path.write_bytes(b"# caf\xe9")
        with pytest.raises(CtxlockError, match=r"rules\.toml is not UTF-8 \(byte 5\)"):
            read_rules(path)


ASKED = Message("u", "user", ["Please look up booking A17"])
CALL = FunctionCall("c", "1", "look_up", "{}")
OUTPUT = FunctionCallOutput("o", "1", "confirmed")


def tool(name: str, **parameters: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": parameters, "required": list(parameters)}
    return {"type": "function", "name": name, "parameters": schema}


def answer(
    items: list[Item], tools: list[dict[str, Any]], rules: Sequence[Rule] = ()
) -> str | Call:
    script = Script(rules)
    script.called("1")
    return script.answer(items, {tool["name"]: tool for tool in tools})


class TestAnswer:
    def test_nothing_was_said(self) -> None:
        assert answer([], [], []) == "Hello, this is the scripted model."

    def test_no_rule_and_no_tool(self) -> None:
        assert answer([Message("u", "user", ["Hi"])], [], []) == 'You said: "Hi". I have no tools.'

    def test_names_its_tools(self) -> None:
        said = answer([Message("u", "user", ["Hi"])], [tool("a"), tool("b")], [])
        assert said == 'You said: "Hi". I have these tools: a, b.'

    def test_first_rule_that_fits(self, tmp_path: Path) -> None:
        given = rules(GOOD, tmp_path)
        arguments = {"number": "A17", "nights": 2}
        assert answer([ASKED], [tool("look_up")], given) == Call("look_up", arguments)
        assert answer([Message("u", "user", ["Thanks"])], [], given) == "You are welcome."

    def test_a_rule_whose_tool_is_not_offered_does_not_fit(self, tmp_path: Path) -> None:
        said = answer([ASKED], [tool("another")], rules(GOOD, tmp_path))
        assert isinstance(said, str) and said.startswith("You said")

    def test_calls_a_tool_by_its_name(self) -> None:
        tools = [tool("look"), tool("look_up_booking", number={"type": "string"})]
        arguments = {"number": ASKED.text_content}
        assert answer([ASKED], tools[1:], []) == Call("look_up_booking", arguments)
        assert answer([ASKED], tools, []) == Call("look", {})  # the first one
        assert isinstance(answer([ASKED], [tool("book")], []), str)  # no part of a word

    def test_fills_in_arguments(self) -> None:
        parameters = {
            "n": {"type": "integer"},
            "sure": {"type": "boolean"},
            "kind": {"type": "string", "enum": ["single", "double"]},
            "any": {},
            "either": {"type": ["string", "null"]},
        }
        said = answer([ASKED], [tool("look_up", **parameters)], [])
        text = ASKED.text_content
        filled = {"n": 1, "sure": False, "kind": "single", "any": text, "either": text}
        assert said == Call("look_up", filled)

    @pytest.mark.parametrize(
        ("items", "said"),
        [
            pytest.param([ASKED, CALL, OUTPUT], "The result of look_up is: confirmed", id="has it"),
            pytest.param(
                [ASKED, CALL],
                "I do not know: I called look_up, and have no result of it.",
                id="lost it",
            ),
        ],
    )
    def test_says_what_it_has_of_its_calls(
        self, items: list[Item], said: str, tmp_path: Path
    ) -> None:
        assert answer(items, [tool("look_up")], rules(GOOD, tmp_path)) == said

    def test_tells_of_each_call_once(self) -> None:
        script = Script([])
        script.called("1")
        assert "no result" in str(script.answer([ASKED, CALL], {}))
        assert "You said" in str(script.answer([ASKED, CALL], {}))
        assert "confirmed" in str(script.answer([ASKED, CALL, OUTPUT], {}))
        assert "You said" in str(script.answer([ASKED, CALL, OUTPUT], {}))

    def test_tells_of_a_call_behind_which_the_user_said_more(self) -> None:
        assert "no result" in str(answer([ASKED, CALL, ASKED], []))

    def test_calls_of_another_model_are_not_its_own(self) -> None:
        script = Script([])
        assert "You said" in str(script.answer([ASKED, CALL], {}))
