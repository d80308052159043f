"""What the tests of the lost items' siblings share: where they run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from _realtime_support import BEYOND_THE_LOCK, VERSION, has_engine

from ctxlock.races.releases import Releases

if VERSION not in Releases(BEYOND_THE_LOCK) or not has_engine():
    reason = (
        f"only {BEYOND_THE_LOCK} and later, with a livekit-plugins-openai that is scripted here"
    )
    pytest.skip(reason, allow_module_level=True)

from ctxlock.races import backend
from ctxlock.races.loopback.model import serving

both_ways = pytest.mark.parametrize(
    "over", [pytest.param(None, id="fake"), pytest.param(serving, id="websocket")]
)
"""The fake provider, and the OpenAI engine over a websocket."""

websocket_alone = pytest.mark.parametrize("over", [pytest.param(serving, id="websocket")])


@contextmanager
def through(over: Any) -> Iterator[None]:
    with backend.over(over):
        yield
