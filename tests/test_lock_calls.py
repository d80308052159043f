"""The calls that the scope `full` adds to a file in which every site is guarded."""

from __future__ import annotations

import pytest
from activity import HEAD, LOCK, informed, locked, module
from call_pairs import ADDED, ALONE

from ctxlock.patching.lock_calls import add_calls


@pytest.mark.parametrize(("guarded", "told"), ADDED.values(), ids=ADDED)
def test_adds(guarded: str, told: str) -> None:
    assert add_calls(locked(guarded)) == informed(told)


@pytest.mark.parametrize("method", ALONE.values(), ids=ALONE)
def test_leaves_alone(method: str) -> None:
    assert add_calls(locked(method)) == informed(method)


def test_the_lock_keeps_its_comments() -> None:
    made = LOCK.replace("asyncio.Lock()\n", "asyncio.Lock()  # one\n")
    assert add_calls(module(head=HEAD + made)) == informed().replace(
        "RealtimeContextLock(self)\n", "RealtimeContextLock(self)  # one\n"
    )


@pytest.mark.parametrize(
    ("imports", "expected"),
    [
        pytest.param(
            "import asyncio\nfrom .._a import a\nfrom ._q import q\nfrom ._z import z\n",
            "import asyncio\nfrom .._a import a\nfrom ._q import q\nNEW\nfrom ._z import z\n",
            id="between siblings",
        ),
        pytest.param(
            "import asyncio\nfrom .zebra import (\n    z,\n)\n",
            "import asyncio\nNEW\nfrom .zebra import (\n    z,\n)\n",
            id="before a sibling",
        ),
        pytest.param(
            '"""What."""\n\nimport asyncio\nfrom ._a import a\n\nx = 1\n',
            '"""What."""\n\nimport asyncio\nfrom ._a import a\nNEW\n\nx = 1\n',
            id="behind all imports",
        ),
        pytest.param("x = 1\n", "NEW\nx = 1\n", id="without imports"),
    ],
)
def test_imports_the_lock(imports: str, expected: str) -> None:
    new = "from ._realtime_context import RealtimeContextLock\n"
    told = informed().replace("import asyncio\n" + new, expected.replace("NEW\n", new))
    assert add_calls(locked().replace("import asyncio\n", imports)) == told


@pytest.mark.parametrize(("unit", "newline"), [("  ", "\n"), ("\t", "\n"), ("    ", "\r\n")])
@pytest.mark.parametrize(("guarded", "told"), ADDED.values(), ids=ADDED)
def test_follows_the_file(guarded: str, told: str, unit: str, newline: str) -> None:
    def written(source: str) -> str:
        return source.replace("    ", unit).replace("\n", newline)

    assert add_calls(written(locked(guarded))) == written(informed(told))


def test_leaves_other_classes_alone() -> None:
    other = ADDED["replacement"][0].replace("\n", "\n    ").rstrip(" ")
    more = (
        f"\n\nclass Other:\n    {other}\n\ndef start(self):\n    self._rt_session = x.session()\n"
    )
    assert add_calls(locked() + more) == informed() + more
