"""Makes HTML and SVG elements; whatever text they hold is escaped when they are written."""

from __future__ import annotations

from xml.etree.ElementTree import Element, tostring

__all__ = ["Element", "el", "serialize"]


def el(tag: str, *children: Element | str, **attributes: object) -> Element:
    """An element; ``class_`` stands for the attribute ``class``, other underscores for hyphens."""
    named = {name.rstrip("_").replace("_", "-"): str(v) for name, v in attributes.items()}
    element = Element(tag, named)
    last: Element | None = None
    for child in children:
        if not isinstance(child, str):
            element.append(child)
            last = child
        elif last is None:
            element.text = (element.text or "") + child
        else:
            last.tail = (last.tail or "") + child
    return element


def serialize(element: Element) -> str:
    """The element as HTML."""
    return tostring(element, encoding="unicode", method="html")
