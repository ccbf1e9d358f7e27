"""Takes a post down.

``DELETE`` on a post's id answers ``{"success": true}``; Graph lets an application delete only what
it made itself, and not every application that (https://developers.facebook.com/docs/graph-api/
reference/pagepost/). What is gone is answered with code 100, subcode 33, and so is what the token
may not touch: then the Page and the post are read to tell the two apart.
"""

from __future__ import annotations

import re
from dataclasses import replace

from publisher.engine.outcome import (
    AlreadyGone,
    CannotWithdraw,
    NotWithdrawn,
    Withdrawal,
    Withdrawn,
    cannot_withdraw,
)
from publisher.graph.call import Node
from publisher.graph.complaint import Complaint
from publisher.graph.refusals import Endpoint, classify
from publisher.transport import Failed, Reply, Transport

_ID = re.compile(r"(?:([0-9]{1,30})_)?[0-9]{1,30}")
_NO_SUCH_OBJECT = (100, 33)
_OK = 200


def withdraw(transport: Transport, node: Node, remote_id: str) -> Withdrawal:
    """Delete the post, or video, of ``node``'s Page that ``remote_id`` names."""
    named = _ID.fullmatch(remote_id)
    if named is None or named[1] not in (None, node.id):
        return CannotWithdraw(NotWithdrawn.REFUSED, "Its id is not that of a post of this Page.")
    post = replace(node, id=remote_id)
    reply = transport.step(post.delete())
    if isinstance(reply, Failed):
        return CannotWithdraw(NotWithdrawn.UNCLEAR, node.hide(reply.detail))
    body, complaint = reply.json(), Complaint.read(reply)
    if reply.status == _OK and (body is True or _is_success(body)):
        return Withdrawn()
    if complaint is None:
        detail = f"Facebook answered HTTP {reply.status}, and not whether the post was deleted."
        return CannotWithdraw(NotWithdrawn.UNCLEAR, detail)
    if _is_missing(reply):
        return _gone_or_forbidden(transport, node, post, complaint)
    return _refused(node, reply, complaint)


def _is_success(body: object) -> bool:
    return isinstance(body, dict) and body.get("success") is True


def _is_missing(reply: Reply) -> bool:
    complaint = Complaint.read(reply)
    return complaint is not None and (complaint.code, complaint.subcode) == _NO_SUCH_OBJECT


def _gone_or_forbidden(
    transport: Transport, page: Node, post: Node, complaint: Complaint
) -> Withdrawal:
    """It is gone when the same token reads the Page, and still finds no such post."""
    own = transport.read(page.get(params={"fields": "id"}))
    there = transport.read(post.get(params={"fields": "id"}))
    if isinstance(own, Failed) or isinstance(there, Failed) or own.status != _OK:
        detail = "Facebook has no such post, or does not show it to us just now."
        return CannotWithdraw(NotWithdrawn.UNCLEAR, detail)
    if there.status == _OK:
        return CannotWithdraw(NotWithdrawn.REFUSED, page.hide(complaint.detail))
    if _is_missing(there):
        return AlreadyGone()
    return CannotWithdraw(NotWithdrawn.UNCLEAR, f"Facebook answered HTTP {there.status} to a read.")


def _refused(node: Node, reply: Reply, complaint: Complaint) -> CannotWithdraw:
    """By the closed list of posts where it has a row; a code that proves nothing there is open."""
    row = classify(Endpoint.FEED, reply, 0, secrets=(node.token,))
    if row is not None:
        return cannot_withdraw(row)
    clear = 400 <= reply.status < 500 and not complaint.is_transient  # noqa: PLR2004 - HTTP's
    reason = NotWithdrawn.REFUSED if clear else NotWithdrawn.UNCLEAR
    return CannotWithdraw(reason, node.hide(complaint.detail))
