from __future__ import annotations

import pytest
from activity import NAME, PUSH, guarded, module, refuses
from lock_pairs import ACCEPTED, BARE, GUARDED, REFUSED

from ctxlock.analysis.inverse import check_inverse
from ctxlock.errors import NotUnderstood


def compare(original: str, patched: str) -> None:
    check_inverse(original.encode(), patched.encode(), NAME)


@pytest.mark.parametrize(("original", "patched"), ACCEPTED.values(), ids=ACCEPTED)
def test_accepts_the_lock(original: str, patched: str) -> None:
    compare(original, patched)


@pytest.mark.parametrize(("original", "patched"), REFUSED.values(), ids=REFUSED)
def test_refuses_more_than_the_lock(original: str, patched: str) -> None:
    with pytest.raises(NotUnderstood, match="changed more than the lock"):
        compare(original, patched)


def test_names_the_first_line_that_changed() -> None:
    original = module(BARE.replace("before(said)", "before(said)  # <- here"), PUSH)
    patched = guarded(GUARDED.replace("before", "ahead").replace("after", "behind"), PUSH)
    with refuses(original, "changed more than the lock"):
        compare(original, patched)
