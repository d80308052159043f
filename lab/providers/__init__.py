"""One file for each provider; the file's name is the provider's, its class is called `Provider`."""

from __future__ import annotations

import importlib
import pkgutil

from ..far_end import FarEnd

__all__ = ["load", "names"]


def names() -> list[str]:
    """All providers, by name."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load(name: str) -> type[FarEnd]:
    """The far end of a provider; its plugin need not be installed for that."""
    provider: type[FarEnd] = importlib.import_module(f"{__name__}.{name}").Provider
    return provider
