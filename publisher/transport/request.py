"""What an adapter asks for: one request, with the values in it that must never be kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FilePart:
    """One file of a multipart body.

    ``open`` yields its ``size`` bytes from the start each time it is called; it is called twice,
    once to read the file before anything is connected and once to send it.
    """

    field: str
    filename: str
    type: str
    size: int
    open: Callable[[], Iterator[bytes]] = dataclasses.field(repr=False)


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request; equal requests are equal byte for byte on the wire.

    At most one of ``form`` with ``files`` (urlencoded, or multipart when there are files),
    ``json`` and ``content`` (one file that is the whole body) is given. ``secrets`` are cut out of
    whatever is kept or logged. ``trusted`` is False for an address that came by page, API or file:
    where it leads is checked then.
    """

    method: str
    url: str = dataclasses.field(repr=False)
    params: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    form: Sequence[tuple[str, str]] | None = dataclasses.field(default=None, repr=False)
    json: object | None = dataclasses.field(default=None, repr=False)
    files: Sequence[FilePart] = ()
    content: FilePart | None = None
    secrets: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    trusted: bool = True


class BadRequest(ValueError):
    """A request that cannot be put on the wire as it stands. Nothing was connected."""
