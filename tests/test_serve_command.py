"""`ctxlock serve` as a process."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
from cli import run, says
from serving import Client, command, output, user


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_ends_cleanly(by: signal.Signals) -> None:
    with command() as server:
        assert f'RealtimeModel(base_url="{server.url}", api_key="unused")' in str(server.events[0])
        assert server.url.startswith("http://127.0.0.1:")
        last = server.end(by)
        assert (last["connections"], last["lost"]) == (0, 0)


async def test_ends_cleanly_with_a_client_that_waits() -> None:
    with command("--hold-tool-outputs") as server:
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(f"{server.url}/realtime") as websocket,
        ):
            client = Client(websocket)
            await client.create(output("1"))
            server.until("holding")
            server.process.send_signal(signal.SIGTERM)
            await client.websocket.receive()  # session.created
            assert (await client.websocket.receive()).type is aiohttp.WSMsgType.CLOSE
        assert server.until("ended")["connections"] == 1
        assert server.process.wait() == 0


async def test_enter_sends_what_is_held() -> None:
    with command("--hold-tool-outputs") as server:
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(f"{server.url}/realtime") as websocket,
        ):
            await Client(websocket).create(output("1"))
            server.until("holding")
            server.press_enter()
            assert server.until("released")["reason"] == "you asked for it"
            assert await Client(websocket).acknowledged() == "output_1"
        server.end()


async def test_prints_for_people(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nwhen = "hello"\nsay = "[red]Good morning."', encoding="utf-8")
    options = [*("--port", "0"), *("--rules", str(rules))]
    with subprocess.Popen(
        [sys.executable, "-m", "ctxlock", "serve", *options], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[2].rstrip(".")
        assert url in process.stdout.readline()
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(f"{url}/realtime") as websocket,
        ):
            client = Client(websocket)
            await client.create(user("A", "hello"))
            await client.send("response.create")
            await client.receive("response.done")
        process.terminate()
        printed = process.stdout.read()
        assert process.wait() == 0
    assert '[1] created: user "hello"\n' in printed
    assert '[1] the model says: "[red]Good morning."\n' in printed
    assert "[1] the agent has disconnected\n" in printed
    assert printed.endswith("Ended. Connections: 1; tool outputs deleted: 0.\n")


def test_a_taken_port(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run("serve", "--port", str(port)) == 3
    said = " ".join(capsys.readouterr().err.split())
    assert f"cannot listen on 127.0.0.1, port {port}: " in said
    assert "Give a --port that is free" in said


def test_no_such_host() -> None:
    said = says(3, "serve", "--host", "no.such.host.invalid", "--port", "0").err
    assert "Anybody who reaches no.such.host.invalid" in said
    assert "cannot listen on no.such.host.invalid" in said


def test_loopback_by_name_needs_no_warning() -> None:
    with command("--host", "localhost") as server:
        server.end()


@pytest.mark.parametrize(
    "options",
    [
        ("--ack-delay", "-1"),
        ("--ack-delay", "nan"),
        ("--ack-delay", "inf"),
        ("--port", "65536"),
        ("--host", ""),
    ],
)
def test_wrong_usage(options: tuple[str, str]) -> None:
    assert run("serve", *options) == 2


def test_bad_rules(tmp_path: Path) -> None:
    assert "none.toml could not be read" in says(
        3, "serve", "--rules", tmp_path / "none.toml"
    ).err.replace("\n", "")


def test_without_its_extra() -> None:
    # in a process of its own, as what is imported here stays
    code = "import sys; sys.modules['aiohttp'] = None; sys.argv[1:] = ['serve']\n"
    code += "from ctxlock.__main__ import main; main()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 3
    assert "needs aiohttp, which is not installed: install the extra" in ran.stderr


def test_needs_nothing_of_livekit() -> None:
    code = "import sys; sys.modules['livekit'] = None; import ctxlock.serve.run"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_other_command_needs_aiohttp() -> None:
    code = "import sys; sys.modules['aiohttp'] = None; import ctxlock.__main__"
    subprocess.run([sys.executable, "-c", code], check=True)
