"""The example, unchanged, on stock and on patched releases, with the scripted server."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect
import pytest
from serving import WATCHDOG, Command, command

from ctxlock.buildapi import TREE

pytestmark = pytest.mark.network

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
RULES = ("--rules", str(EXAMPLES / "front_desk.toml"))
PROMPT = "Type to talk to your agent"
QUESTION = "Is my booking confirmed?"
HOLD_LINE = "Still looking, thank you for waiting."
RESULT = "The result of look_up_booking is: two nights from Friday in room 12, confirmed"
NO_RESULT = "I do not know: I called look_up_booking, and have no result of it."

Environment = Callable[[str, bool], str]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Makes an environment with a release of livekit-agents, patched or not; gives its Python."""
    made: dict[tuple[str, bool], str] = {}

    def uv(*arguments: str) -> None:
        subprocess.run(["uv", *arguments], check=True, cwd=tmp_path_factory.getbasetemp())

    def make(release: str, patched: bool) -> str:
        if (release, patched) in made:
            return made[release, patched]
        folder = tmp_path_factory.mktemp("environment")
        uv("venv", "-q", "--clear", "-p", sys.executable, str(folder))
        python = str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
        install = ("pip", "install", "-q", "-p", python)
        uv(*install, *(f"{n}=={release}" for n in ("livekit-agents", "livekit-plugins-openai")))
        if patched:
            uv(*install, "--no-deps", "--reinstall", str(TREE), "-C", f"upstream={release}")
        made[release, patched] = python
        return python

    return make


def variables(server: Command) -> dict[str, str]:
    return {**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "unused"}


def assert_told(server: Command, patched: bool) -> None:
    """The server told of a lost output, and its model knew nothing; or neither."""
    lost = [e for e in server.events if e["event"] == "deleted" and e["lost"]]
    said = [e["text"] for e in server.events if e["event"] == "said"]
    assert [e["item"]["type"] for e in lost] == ([] if patched else ["function_call_output"])
    assert said[0] == (RESULT if patched else NO_RESULT)
    assert server.end()["lost"] == len(lost)


def speeches(server: Command) -> int:
    """How many times the agent's `say()` has reached the model so far."""
    texts = [str(e["item"].get("content")) for e in server.events if e["event"] == "created"]
    return sum(HOLD_LINE in text for text in texts)


@contextmanager
def console(python: str, server: Command) -> Iterator[Any]:
    """The library's own text console, in a terminal; it must end well."""
    # it opens the sound library, even to write
    found = subprocess.run([python, "-c", "import sounddevice"], capture_output=True, text=True)
    if "PortAudio library not found" in found.stderr:
        pytest.skip("there is no PortAudio, as Debian's libportaudio2 has it")
    desk = pexpect.spawn(
        *(python, [str(EXAMPLES / "front_desk.py"), "console", "--text"]),
        env=variables(server),
        encoding="utf-8",
        timeout=WATCHDOG,
        dimensions=(40, 200),  # what the tests wait for fits a line
    )
    try:
        desk.expect_exact(PROMPT)
        yield desk
        desk.expect_exact(PROMPT)
        desk.sendintr()
        desk.expect_exact(pexpect.EOF)
    finally:
        desk.close(force=True)
    assert desk.exitstatus == 0


@pytest.mark.parametrize("patched", [False, True], ids=["stock", "patched"])
def test_say_beside_a_tool(patched: bool, environment: Environment) -> None:
    python = environment("1.8.9", patched)
    with command("--hold-tool-outputs", *RULES) as server:
        with console(python, server) as desk:
            desk.send(f"{QUESTION}\r")
            server.until("holding")
            # those that the model has been told of came before; the next one is the overlap
            for _ in range(speeches(server) + 1):
                desk.expect_exact(f"assistant: {HOLD_LINE}")
            server.press_enter()
            server.until("said")
            desk.expect_exact(f"assistant: {RESULT if patched else NO_RESULT}")
        assert_told(server, patched)


def test_a_handoff_loses_nothing(environment: Environment) -> None:
    with command(*RULES) as server:
        with console(environment("1.8.9", True), server) as desk:
            desk.send("Could I have towels?\r")
            desk.expect_exact("assistant: This is housekeeping, what do you need?")
            desk.expect_exact(PROMPT)
            desk.send("Two towels, please.\r")
            desk.expect_exact("assistant: The result of bring is: Two towels: on its way")
        server.end()
        deleted = [e for e in server.events if e["event"] == "deleted"]
        # the library gives the second agent an empty conversation
        assert deleted and not any(e["lost"] for e in deleted)


@pytest.mark.parametrize("patched", [False, True], ids=["stock", "patched"])
def test_typing_beside_a_tool(patched: bool, environment: Environment) -> None:
    python = environment("1.8.8", patched)
    with (
        command("--hold-tool-outputs", *RULES) as server,
        subprocess.Popen(
            [python, str(ROOT / "tests" / "typing_guest.py")],
            env=variables(server) | {"PYTHONPATH": str(EXAMPLES)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as guest,
    ):
        watchdog = threading.Timer(WATCHDOG, guest.kill)
        watchdog.start()
        assert guest.stdin is not None and guest.stdout is not None

        def until(line: str) -> None:
            assert guest.stdout is not None
            assert any(said.strip() == line for said in guest.stdout), f"no {line!r}"

        def type_in(text: str) -> None:
            assert guest.stdin is not None
            guest.stdin.write(f"{text}\n")
            guest.stdin.flush()
            until("typed")

        try:
            until("ready")
            type_in(QUESTION)
            server.until("holding")
            type_in("And is breakfast included?")
            server.press_enter()
            server.until("said")
        finally:
            watchdog.cancel()
            guest.kill()
        assert_told(server, patched)
