"""The command `ctxlock`, as `python -m ctxlock`."""

from __future__ import annotations

from .cli.app import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
