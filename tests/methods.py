"""Methods for the small activities of the tests, made of statements."""

from __future__ import annotations

from textwrap import dedent, indent

# The statements that the methods are about.
READ = "ctx = self._rt_session.chat_ctx.copy()"
SEND = "await self._rt_session.update_chat_ctx(ctx)"
HOLD = "async with self._rt_chat_ctx_lock:"
CHECK = "if self._rt_session is not None:"


def block(head: str, *body: str) -> str:
    """A compound statement; of `body`, each is a statement of one line or more."""
    return head + "".join("\n" + indent(statement, "    ") for statement in body)


def given(*body: str) -> str:
    """A method that is given a context."""
    return block("async def sync(self, ctx):", *body) + "\n"


def taking(*body: str) -> str:
    """A method that takes a snapshot first."""
    return block("async def sync(self):", READ, *body) + "\n"


def pair(method: str) -> tuple[str, str]:
    """A method as it was and as it is patched, of one with a margin like that of a diff.

    A line with `-` is gone, and one with `+` is new. What an added line holds was less deep.
    """
    before = after = ""
    around: list[int] = []  # the depths of the added lines that hold the next one
    for line in dedent(method).splitlines(keepends=True):
        mark, text = (line[0], " " + line[1:]) if line[0] in "+-" else ("", line)
        depth = len(text) - len(text.lstrip())
        while around and depth <= around[-1] and text.strip():
            around.pop()
        if mark != "-":
            after += text
        if mark != "+":
            before += text[4 * len(around) :] if text.strip() else text
        elif text.endswith(":\n"):
            around.append(depth)
    return before, after
