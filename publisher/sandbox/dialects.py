"""The platforms the sandbox speaks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from publisher.sandbox.bluesky.dialect import Bluesky
from publisher.sandbox.graph.dialect import Graph
from publisher.sandbox.mastodon.dialect import Mastodon
from publisher.sandbox.telegram.dialect import Telegram

if TYPE_CHECKING:
    from publisher.sandbox.dialect import Dialect


def spoken() -> tuple[Dialect[Any], ...]:
    """Return a fresh one of each, in the order in which a path is offered to them."""
    return (Graph(), Bluesky(), Mastodon(), Telegram())
