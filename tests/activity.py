"""Small `agent_activity.py` modules for the tests of the finder and of the rewriter."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent, indent

import pytest

from ctxlock.analysis.inverse import check_inverse
from ctxlock.analysis.sites import find_sites
from ctxlock.analysis.without_calls import plain_source
from ctxlock.errors import NothingToGuard, NotUnderstood
from ctxlock.patching.patch import patch_source
from ctxlock.release import Scope

NAME = "agent_activity.py"
HERE = "# <- here"

NOTICE = """\
# This file is part of livekit-agents and has been modified by ctxlock: the realtime context
# is updated under AgentActivity._rt_chat_ctx_lock, from reading it to the end of the push.

"""

HEAD = """\
import asyncio


class AgentActivity:
    def __init__(self):
        self._rt_session = None
        self._lock = asyncio.Lock()
"""

IMPORT = "from ._realtime_context import RealtimeContextLock\n"

LOCK = """\
        # this activity holds it from reading the realtime context to the end of the push
        self._rt_chat_ctx_lock = asyncio.Lock()
"""

PUSH = """\
async def sync(self, ctx):
    await self._rt_session.update_chat_ctx(ctx)
"""
"""The smallest method with a site, for tests that are about something else."""


REPLACING = """\
async def update_chat_ctx(self, chat_ctx):
    chat_ctx = chat_ctx.copy()
    self._agent._chat_ctx = chat_ctx
    if self._rt_session is not None:
        await self._rt_session.update_chat_ctx(chat_ctx)
"""
"""A replacement, which every release has, and without which the scope `full` is refused."""


def module(*methods: str, head: str = HEAD) -> str:
    """An activity whose class has `methods`, each written from column 0."""
    return head + "".join("\n" + indent(dedent(method), "    ") for method in methods)


def guarded(*methods: str) -> str:
    """The same with a lock, and the notice that the rewriter puts on top."""
    return NOTICE + module(*methods, head=HEAD + LOCK)


def locked(*methods: str) -> str:
    """The same with a lock, as an upstream that makes it itself would look."""
    return module(*methods, head=HEAD + LOCK)


def informed(*methods: str) -> str:
    """The same as the scope full leaves it: with the lock of the added module."""
    head = HEAD.replace("import asyncio\n", f"import asyncio\n{IMPORT}")
    return module(*methods, head=head + LOCK.replace("asyncio.Lock()", "RealtimeContextLock(self)"))


def marked_line(source: str) -> int:
    """The 1-based number of the one line that is marked with `HERE`."""
    (number,) = [n for n, line in enumerate(source.splitlines(), 1) if HERE in line]
    return number


@contextmanager
def refuses(source: str, reason: str) -> Iterator[None]:
    """An error that names the file, the marked line, and `reason` in a full sentence."""
    with pytest.raises(NotUnderstood) as refused:
        yield
    error = refused.value
    assert reason in error.reason
    assert error.reason[0] in "`_" or error.reason[0].isupper()
    assert error.reason.endswith(".")
    assert str(error) == f"{NAME}:{marked_line(source)}: {error.reason}"


def patched_or_refused(source: str, scope: Scope = "lock") -> str | None:
    """What is made of `source`, checked by the finder and the inverse; None if it is refused."""
    try:
        patched = patch_source(source.encode(), NAME, scope)
    except NothingToGuard:
        return source
    except NotUnderstood as e:
        assert 1 <= e.line <= len(source.splitlines())
        assert e.reason.endswith(".")
        return None
    text = patched.source.decode()
    assert patched.sites == find_sites(text, NAME)
    assert not any(site.state == "bare" or site.rechecked is False for site in patched.sites)
    check_inverse(source.encode(), plain_source(patched.source), NAME)
    return text


def fetch(version: str, folder: Path) -> Path:
    """The `agent_activity.py` of a stock release, installed into `folder`."""
    wanted = ["install", "--quiet", "--no-deps", "--target", str(folder)]
    wanted.append(f"livekit-agents=={version}")
    uv = shutil.which("uv")
    if uv is None:
        command = [sys.executable, "-m", "pip", *wanted]
    else:
        command = [uv, "pip", *wanted, "--python", sys.executable]
    subprocess.run(command, check=True)
    return folder / "livekit" / "agents" / "voice" / "agent_activity.py"
