"""What a channel itself lacks for a post that is due at some time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, tzinfo

from publisher.editorial.checks import dates
from publisher.engine.adapter import Problem, Severity
from publisher.words import _


def problems(
    name: str,
    due_at: datetime | None,
    expires_at: datetime | None,
    of: tzinfo,
    *,
    broken: bool,
) -> Iterator[Problem]:
    """Yield a note about a token that is no longer taken, or that ends before ``due_at``.

    A token that ends at the very instant is too short: what is due then is sent a little later.
    """
    if broken:
        what = _("“{name}” no longer accepts our access.").format(name=name)
        fix = _("Reconnect it: until then its posts wait and are not sent.")
        yield Problem("channel", "channel-needs-reconnecting", what, fix, Severity.NOTE)
    elif due_at is not None and expires_at is not None and expires_at <= due_at:
        what = _("Our access to “{name}” ends on {when}, before this is due.").format(
            name=name, when=dates.moment(expires_at, of)
        )
        fix = _("Reconnect it before then, or choose an earlier time.")
        yield Problem("channel", "token-ends-before", what, fix, Severity.NOTE)
