"""Takes a status down: ``DELETE /api/v1/statuses/:id``.

A server says "not found" of what is gone and of what is another account's alike, and compatible
ones with an HTML page for it. So the status is read before it is called gone.
https://docs.joinmastodon.org/methods/statuses/#delete
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from publisher.adapters.mastodon.account import Account
from publisher.adapters.mastodon.identify import NOT_FOUND
from publisher.adapters.mastodon.refusals import step_failure
from publisher.engine.outcome import (
    AlreadyGone,
    CannotWithdraw,
    NotWithdrawn,
    Withdrawal,
    Withdrawn,
    cannot_withdraw,
)
from publisher.transport import Failed, Transport

_OK: Final = 200
_FORBIDDEN: Final = 403


def withdraw(transport: Transport, account: Account, status_id: str) -> Withdrawal:
    """Delete the status of ``account`` with that id."""
    path = f"/api/v1/statuses/{quote(status_id, safe='')}"
    reply = transport.step(account.delete(path))
    if isinstance(reply, Failed):
        return CannotWithdraw(NotWithdrawn.UNCLEAR, account.hide(reply.detail))
    if reply.status == _OK:
        body = reply.json()
        if isinstance(body, dict) and "error" not in body:
            return Withdrawn()
        detail = "The server answered 200, and not whether the post was deleted."
        return CannotWithdraw(NotWithdrawn.UNCLEAR, detail)
    if reply.status in NOT_FOUND:
        return _gone_or_anothers(transport, account, path)
    what = "The server did not delete the post"
    failure = cannot_withdraw(step_failure(what, reply, secrets=(account.token,)))
    if reply.status == _FORBIDDEN:
        # Of a publish it means the account; here it is this post, or the token's scope.
        return CannotWithdraw(NotWithdrawn.REFUSED, failure.detail)
    return failure


def _gone_or_anothers(transport: Transport, account: Account, path: str) -> Withdrawal:
    reply = transport.read(account.get(path))
    if isinstance(reply, Failed):
        return CannotWithdraw(NotWithdrawn.UNCLEAR, account.hide(reply.detail))
    if reply.status in NOT_FOUND:
        return AlreadyGone()
    if reply.status == _OK:
        detail = "The post is there, and the server does not let this account delete it."
        return CannotWithdraw(NotWithdrawn.REFUSED, detail)
    return CannotWithdraw(NotWithdrawn.UNCLEAR, f"The server answered HTTP {reply.status}.")
