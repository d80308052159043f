"""What can go wrong, each as a full sentence that names the remedy."""

from __future__ import annotations

__all__ = ["CtxlockError", "NotUnderstood", "NothingToGuard"]


class CtxlockError(Exception):
    """A problem the reader can act on; ``str()`` of it is ready to print."""


class NotUnderstood(CtxlockError):
    """Source code of a shape that the rewriter or the finder does not know.

    Args:
        filename: The file, as the reader knows it.
        line: The 1-based line of the offending statement.
        reason: A clause that says what was found and what was expected.
    """

    def __init__(self, filename: str, line: int, reason: str) -> None:
        self.filename = filename
        self.line = line
        self.reason = reason
        super().__init__(f"{filename}:{line}: {reason}")

    def __reduce__(self) -> tuple[type[NotUnderstood], tuple[str, int, str]]:
        """Lets another process raise it."""
        return type(self), (self.filename, self.line, self.reason)


class NothingToGuard(CtxlockError):
    """Every site of this release is guarded already, so the stock release suffices."""
