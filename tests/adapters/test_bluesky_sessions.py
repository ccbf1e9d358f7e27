"""Bluesky: logging in, renewing, and what is never kept of either."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from publisher.adapters.bluesky import Bluesky
from publisher.adapters.bluesky.account import ENTRYWAY, Account
from publisher.adapters.bluesky.sessions import Session, _records_at
from publisher.engine.adapter import Ready, Task
from publisher.engine.content import Post
from publisher.engine.evidence import Inconclusive
from publisher.engine.job import Channel
from publisher.engine.outcome import Deferred, Unauthorized
from publisher.transport import Transport
from tests.adapters.bluesky_liar import (
    DID,
    LOG_IN,
    PASSWORD,
    REFRESH,
    RENEW,
    SECRETS,
    SESSION,
    adapter_at,
    channel,
    scripted,
)
from tests.adapters.liar import Liar, Said
from tests.adapters.stand import Attempt, make_permit, make_task

A, D = Unauthorized, Deferred


def age(adapter: Bluesky, task: Task) -> None:
    """Log in, and let the session grow old."""
    assert isinstance(adapter.step(task), Ready)
    account = adapter._account(task.channel)
    assert isinstance(account, Account)
    session = adapter._sessions.fresh(account)
    assert isinstance(session, Session)
    adapter._sessions.expire(account, session)
    assert adapter._sessions.fresh(account) is None


class TestSessions:
    def test_one_thread_logs_in_and_the_others_wait(self, transport: Transport) -> None:
        arrived = threading.Barrier(6)
        with Liar(scripted()) as liar:
            adapter = adapter_at(liar.url, transport)

            def step(number: int) -> object:
                arrived.wait()
                return adapter.step(make_task(channel(), Post(f"Post {number}")))

            with ThreadPoolExecutor(6) as pool:
                assert {type(done) for done in pool.map(step, range(6))} == {Ready}
            assert [asked.path for asked in liar.asked] == [LOG_IN]

    def test_a_new_generation_or_password_is_a_new_session(self, transport: Transport) -> None:
        with Liar(scripted()) as liar:
            adapter = adapter_at(liar.url, transport)
            task = make_task(channel(), Post("x"))
            assert isinstance(adapter.step(task), Ready)
            newer = replace(task, channel=channel(generation=2))
            assert adapter.prepared(newer) is None
            assert isinstance(adapter.step(newer), Ready)
            adapter._vault_open = lambda _: "another-password"
            assert isinstance(adapter.step(newer), Ready)
            assert [asked.path for asked in liar.asked] == [LOG_IN] * 3

    def test_an_old_session_is_renewed_with_its_refresh_token(self, transport: Transport) -> None:
        renewed = Said(SESSION | {"accessJwt": "canary.newer.token"})
        with Liar(scripted(refreshSession=renewed)) as liar:
            adapter = adapter_at(liar.url, transport)
            age(adapter, make_task(channel(), Post("x")))
            assert isinstance(adapter.step(make_task(channel(), Post("y"))), Ready)
            assert [asked.path for asked in liar.asked] == [LOG_IN, RENEW]
            assert liar.asked[1].headers["authorization"] == f"Bearer {REFRESH}"
            assert liar.asked[1].body == b""

    @pytest.mark.parametrize(
        ("refused", "log_ins"),
        [
            (Said({"error": "ExpiredToken"}, 400), 2),
            (Said({"error": "InvalidToken"}, 400), 2),
            (Said({"error": "RateLimitExceeded"}, 429), 1),
            (Said(SESSION, missing=5), 1),
        ],
    )
    def test_what_cannot_be_renewed(
        self, transport: Transport, refused: Said, log_ins: int
    ) -> None:
        with Liar(scripted(refreshSession=refused)) as liar:
            adapter = adapter_at(liar.url, transport)
            age(adapter, make_task(channel(), Post("x")))
            step = adapter.step(make_task(channel(), Post("y")))
            assert isinstance(step, Ready if log_ins == 2 else Deferred)
            assert [asked.path for asked in liar.asked].count(LOG_IN) == log_ins
            assert not [secret for secret in SECRETS if secret in repr(step)]

    @pytest.mark.parametrize(
        ("said", "kind"),
        [
            (Said({"error": "AuthenticationRequired", "message": f"not {PASSWORD}"}, 401), A),
            (Said({"error": "AuthFactorTokenRequired"}, 401), A),
            (Said({"error": "AccountTakedown"}, 401), A),
            (Said({"error": "RateLimitExceeded"}, 429), D),
            (Said({"error": "InternalServerError"}, 500), D),
            (Said(SESSION, missing=3), D),
            (Said(SESSION | {"did": "nobody"}), D),
            (Said(SESSION | {"accessJwt": "two\nlines"}), D),
            (Said(SESSION | {"did": "did:plc:bbbbbbbbbbbbbbbbbbbbbbbb"}), A),
            (Said(b"<html>"), D),
        ],
    )
    def test_a_log_in_that_fails_is_an_outcome_without_secrets(
        self, transport: Transport, said: Said, kind: type, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("DEBUG")
        with Liar(scripted(createSession=said)) as liar:
            adapter = adapter_at(liar.url, transport)
            step = adapter.step(make_task(channel(), Post("x")))
            task = make_task(channel(), Post("x"))
            evidence = adapter.look(Attempt(task, make_permit(task)).query())
            health = adapter.check(channel())
        assert isinstance(step, kind)
        assert getattr(step, "row", "") == ""
        assert isinstance(evidence, Inconclusive)
        assert not health.usable
        kept = f"{step!r}{evidence!r}{health!r}{caplog.text}{adapter._sessions._kept!r}"
        assert not [secret for secret in SECRETS if secret in kept]

    @pytest.mark.parametrize(
        ("credential", "remote_id", "identifier"),
        [
            (PASSWORD, DID, DID),
            (f"  {PASSWORD}\n", "@an.test", "an.test"),
            ('{"identifier": "@an.test", "password": "canary-pass-word-abcd"}', DID, "an.test"),
            ('{"password": "canary-pass-word-abcd"}', "an.test", "an.test"),
        ],
    )
    def test_credentials(
        self, transport: Transport, credential: str, remote_id: str, identifier: str
    ) -> None:
        with Liar(scripted()) as liar:
            adapter = adapter_at(liar.url, transport, credential)
            task = make_task(channel(remote_id=remote_id), Post("x"))
            assert isinstance(adapter.step(task), Ready)
            assert not [secret for secret in SECRETS if secret in repr(adapter._sessions._kept)]
            sent = f'{{"identifier":"{identifier}","password":"{PASSWORD}"}}'
            assert liar.asked[0].body.decode() == sent

    @pytest.mark.parametrize("credential", ["", "{", "{}", '{"password": 5}', '{"identifier": 1}'])
    def test_what_is_no_credential(self, transport: Transport, credential: str) -> None:
        adapter = adapter_at("http://127.0.0.1:1", transport, credential)
        assert isinstance(adapter.step(make_task(channel(), Post("x"))), Unauthorized)
        named = channel(remote_id="not a name")
        assert isinstance(adapter.step(make_task(named, Post("x"))), Unauthorized)

    def test_a_vault_that_cannot_be_read_just_now_is_tried_again(
        self, transport: Transport
    ) -> None:
        adapter = adapter_at("http://127.0.0.1:1", transport)

        def fail(_: Channel) -> str:
            raise OSError

        adapter._vault_open = fail
        assert isinstance(adapter.step(make_task(channel(), Post("x"))), Deferred)

    def test_an_entryway_says_where_the_records_are(self) -> None:
        def document(*endpoints: object) -> dict[str, object]:
            kind = "AtprotoPersonalDataServer"
            return {"service": [{"type": kind, "serviceEndpoint": e} for e in endpoints]}

        here = Account(1, 1, DID, DID, "p", ENTRYWAY, trusted=True)
        pds = "https://morel.example.org"
        assert _records_at(here, document(pds + "/")) == (pds, False)
        assert _records_at(here, document("http://169.254.169.254", pds)) == (pds, False)
        for nothing in (None, {}, {"service": 5}, {"service": [5, {"type": "x"}]}, document(7)):
            assert _records_at(here, nothing) == (ENTRYWAY, True)
        own = replace(here, url="https://pds.example.net")
        assert _records_at(own, document(pds)) == ("https://pds.example.net", True)
