"""Sessions as the reference server gives, ends and refuses them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from dataclasses import replace
from typing import Any

import pytest

from publisher.adapters.bluesky.sessions import Session
from publisher.engine.adapter import Ready
from publisher.engine.content import Post
from publisher.engine.outcome import Deferred, Proof, Published, Rejected, Unauthorized
from tests.bluesky.account import RealAccount
from tests.bluesky.reference import ADMIN_PASSWORD, JWT_SECRET
from tests.bluesky.test_content import picture, png

pytestmark = [pytest.mark.bluesky, pytest.mark.timeout(900)]


def put_session(account: RealAccount, **changes: Any) -> Session:  # noqa: ANN401 - any field
    """Change the session that the adapter keeps."""
    kept = account.adapter._sessions._kept
    generation, mark, session = kept[account.channel.id]
    changed = replace(session, **changes)
    kept[account.channel.id] = (generation, mark, changed)
    return changed


def expired(token: str) -> str:
    """The same token, signed by the same server, as it was three hours ago."""
    head, body, _ = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    claims |= {"iat": int(time.time()) - 10_800, "exp": int(time.time()) - 3_600}
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    signed = hmac.new(JWT_SECRET.encode(), f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{base64.urlsafe_b64encode(signed).decode().rstrip('=')}"


def test_an_ended_session_is_renewed_and_the_post_sent_once(account: RealAccount) -> None:
    task, ready = account.prepare(account.job(Post("After the break")))
    first = put_session(account)
    put_session(account, access=expired(first.access))
    outcome = account.publish(task, ready)
    assert isinstance(outcome, Deferred)
    assert (outcome.proof, outcome.row) == (Proof.REFUSED, "bluesky/ExpiredToken")
    assert account.texts() == []
    task = replace(task, attempts=1)
    assert account.adapter.prepared(task) is None
    task, again = account.send(task)
    assert isinstance(again, Published)
    # Two access tokens of one second are equal; refresh tokens are numbered.
    assert put_session(account).refresh != first.refresh
    assert account.texts() == ["After the break"]


def test_a_session_near_its_end_is_renewed_before(account: RealAccount) -> None:
    account.prepare(account.job(Post("Early")))
    old = put_session(account, fresh_until=float("-inf"))
    task = account.job(Post("Late"))
    assert account.adapter.prepared(task) is None
    assert isinstance(account.adapter.step(task), Ready)
    assert put_session(account).refresh != old.refresh


def test_a_refresh_that_is_refused_becomes_a_log_in(account: RealAccount) -> None:
    account.prepare(account.job(Post("Early")))
    put_session(account, fresh_until=float("-inf"), refresh=account.login.token)
    _, outcome = account.send(account.job(Post("In again")))
    assert isinstance(outcome, Published)


def test_a_token_that_is_none_needs_a_person(account: RealAccount) -> None:
    task, ready = account.prepare(account.job(Post("Who are you")))
    put_session(account, access="canary.not.a-token")
    outcome = account.publish(task, ready)
    assert isinstance(outcome, Unauthorized)
    assert outcome.row == "bluesky/InvalidToken"
    assert account.texts() == []


def test_a_wrong_password_needs_a_person(account: RealAccount) -> None:
    account.password = "canary-wrong-password"
    step = account.adapter.step(account.job(Post("Locked out")))
    account.seen.append(step)
    assert isinstance(step, Unauthorized)
    assert "canary" not in repr(step)
    health = account.adapter.check(account.channel)
    assert not health.usable


def test_a_channel_of_another_account_is_refused(account: RealAccount) -> None:
    channel = replace(account.channel, remote_id="did:plc:somebodyelse")
    password = {"identifier": account.login.handle, "password": account.login.password}
    account.password = json.dumps(password)
    assert not account.adapter.check(channel).usable
    assert account.adapter.check(account.channel).usable
    named = replace(account.channel, remote_id=f"@{account.login.handle}", generation=2)
    health = account.adapter.check(named)
    assert (health.usable, health.name) == (True, f"@{account.login.handle}")


def test_an_account_taken_down_needs_a_person(account: RealAccount) -> None:
    task, ready = account.prepare(account.job(Post("Down")))
    basic = base64.b64encode(f"admin:{ADMIN_PASSWORD}".encode()).decode()
    subject = {"$type": "com.atproto.admin.defs#repoRef", "did": account.did}
    given = {"subject": subject, "takedown": {"applied": True, "ref": "test"}}
    name = "com.atproto.admin.updateSubjectStatus"
    assert account.pds.post(name, given, f"Basic {basic}").status == 200
    outcome = account.publish(task, ready)
    assert isinstance(outcome, Unauthorized)
    assert outcome.row == "bluesky/AccountTakedown"
    assert isinstance(account.another_process().step(task), Unauthorized)


def test_a_picture_the_server_dropped_is_uploaded_again(account: RealAccount) -> None:
    """A server drops what no record uses; the second attempt brings it back."""
    item = picture(account, png(3, 3), "A dot")
    task, ready = account.prepare(account.job(Post("With a picture", media=(item,))))
    kept = str(ready.progress["record"])
    missing = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"
    blob = json.loads(kept)["embed"]["images"][0]["image"]["ref"]["$link"]
    gone = Ready({**ready.progress, "record": kept.replace(blob, missing)})
    outcome = account.publish(task, gone)
    assert isinstance(outcome, Deferred)
    assert outcome.row == "bluesky/BlobNotFound"
    later = replace(task, attempts=1)
    assert account.adapter.prepared(later) is None
    _, again = account.send(later)
    assert isinstance(again, Published)


def test_what_the_server_refuses_is_refused_for_good(account: RealAccount) -> None:
    task, ready = account.prepare(account.job(Post("Long")))
    record = json.loads(str(ready.progress["record"])) | {"text": "x" * 301}
    outcome = account.publish(task, Ready({**ready.progress, "record": json.dumps(record)}))
    assert isinstance(outcome, Rejected)
    assert outcome.row == "bluesky/InvalidRequest"
    assert account.texts() == []
