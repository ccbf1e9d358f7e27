"""HTML out of nested calls: whatever is not ``Markup`` is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from publisher.rehearsal.report.phrases import visible

_EMPTY: Final = frozenset({"meta", "br"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Inside: TypeAlias = "Markup | str | None"


def tag(name: str, /, *inside: Inside, **attributes: str | int | bool | None) -> Markup:
    """An element. ``class_`` is ``class``; True gives a bare attribute, False and None none."""
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{escape(visible(str(value)))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _EMPTY:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{together(inside)}</{name}>")


def together(inside: Iterable[Inside]) -> Markup:
    """Parts behind one another; text among them is escaped."""
    return Markup("".join(map(_safe, filter(None, inside))))


def link(url: str, text: str | None = None) -> Markup:
    """A link where ``url`` is one of the web's; else its text alone, which nobody can follow."""
    shown = tag("bdi", text or url, dir="ltr")
    try:
        parts = urlsplit(url)
    except ValueError:
        return shown
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        return shown
    return tag("a", shown, href=url, rel="noopener noreferrer nofollow")


def _safe(part: Markup | str | None) -> str:
    if isinstance(part, Markup):
        return part
    return escape(visible(part or ""))
