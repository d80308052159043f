"""What an update waits for: the lock must not add to that, where the provider took turns before."""

from __future__ import annotations

from _realtime_support import VERSION
from probes import acknowledgements_behind_one

from ctxlock.races.releases import Releases, is_patched


async def test_text_turn_behind_a_pending_push_waits_for_that_and_its_own() -> None:
    assert await acknowledgements_behind_one() == 2


async def test_it_waits_for_the_pending_one_even_if_the_provider_takes_both_at_once() -> None:
    # on stock until 1.8.9 it did not, and deleted what the pending one had added
    stale = not is_patched(VERSION) and VERSION in Releases(before="1.8.9")
    assert await acknowledgements_behind_one(serial=False) == (1 if stale else 2)
