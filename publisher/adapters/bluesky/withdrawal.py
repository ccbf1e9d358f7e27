"""Takes a record down: ``deleteRecord``, which also makes sure of one that is gone.

It answers with the commit that it made, and without one where there was nothing to delete
(bluesky-social/atproto ``lexicons/com/atproto/repo/deleteRecord.json``).
"""

from __future__ import annotations

import re
from typing import Final

from publisher.adapters.bluesky.account import Account
from publisher.adapters.bluesky.refusals import Call, row_for, step_failure
from publisher.adapters.bluesky.sessions import Session, Sessions
from publisher.adapters.bluesky.xrpc import POST, Complaint, words_of
from publisher.engine.outcome import (
    AlreadyGone,
    CannotWithdraw,
    NotWithdrawn,
    Withdrawal,
    Withdrawn,
    cannot_withdraw,
)
from publisher.transport import Failed, Transport

_URI = re.compile(rf"at://([^/]+)/{re.escape(POST)}/([A-Za-z0-9._:~-]{{1,512}})")
_OK: Final = 200
_ITS_OWN: Final = range(400, 500)


def withdraw(
    transport: Transport, sessions: Sessions, account: Account, remote_id: str
) -> Withdrawal:
    """Delete the record at the address ``remote_id``; a session that had ended is renewed once."""
    named = _URI.fullmatch(remote_id)
    session = sessions.ensure(account)
    if not isinstance(session, Session):
        return cannot_withdraw(session)
    if named is None or named[1] != session.did:
        detail = "Its address is not that of a post of this account."
        return CannotWithdraw(NotWithdrawn.REFUSED, detail)
    end = _delete(transport, session, named[2])
    if end is not None:
        return end
    sessions.expire(account, session)
    session = sessions.ensure(account)
    if not isinstance(session, Session):
        return cannot_withdraw(session)
    again = _delete(transport, session, named[2])
    return again or CannotWithdraw(NotWithdrawn.UNCLEAR, "Bluesky takes no session of ours.")


def _delete(transport: Transport, session: Session, rkey: str) -> Withdrawal | None:
    """One call; None where only a fresh session helps."""
    given = {"repo": session.did, "collection": POST, "rkey": rkey}
    reply = transport.step(session.server.post(Call.DELETE, given))
    if isinstance(reply, Failed):
        return CannotWithdraw(NotWithdrawn.UNCLEAR, session.server.hide(reply.detail))
    body, complaint = reply.json(), Complaint.read(reply)
    if reply.status == _OK and isinstance(body, dict) and complaint is None:
        return Withdrawn() if body.get("commit") else AlreadyGone()
    if complaint is not None and complaint.error == "ExpiredToken":
        return None
    if (
        complaint is not None
        and reply.status in _ITS_OWN
        and row_for(Call.DELETE, complaint) is None
    ):
        return CannotWithdraw(NotWithdrawn.REFUSED, words_of(session.server, reply))
    return cannot_withdraw(step_failure(Call.DELETE, session.server, reply))
