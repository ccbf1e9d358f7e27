"""The Bluesky adapter before a server that lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from publisher.adapters.bluesky import Bluesky
from publisher.engine.adapter import Ready
from publisher.engine.content import Post
from publisher.engine.job import Channel
from publisher.engine.outcome import Outcome
from publisher.transport import Transport
from tests.adapters.liar import Asked, Liar, Said
from tests.adapters.stand import Store, make_permit, make_task

DID = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"
PASSWORD = "canary-pass-word-abcd"
ACCESS, REFRESH = "canary.access.token", "canary.refresh.token"
SECRETS = (PASSWORD, ACCESS, REFRESH)
SESSION = {"did": DID, "handle": "an.test", "accessJwt": ACCESS, "refreshJwt": REFRESH}
PUT = "/xrpc/com.atproto.repo.putRecord"
LOG_IN = "/xrpc/com.atproto.server.createSession"
RENEW = "/xrpc/com.atproto.server.refreshSession"
GET = "/xrpc/com.atproto.repo.getRecord"

Script = Callable[[Asked], Said]


def channel(**changes: Any) -> Channel:  # noqa: ANN401 - any field
    made = Channel(
        id=5,
        platform="bluesky",
        name="An",
        remote_id=DID,
        base_url=None,
        sealed=b"sealed",
        generation=1,
    )
    return replace(made, **changes)


def adapter_at(url: str, transport: Transport, credential: str = PASSWORD) -> Bluesky:
    return Bluesky(transport, lambda _: credential, Store({}), base_url=url)


def scripted(**answers: Said) -> Script:
    """Answer a method by the last part of its name; a log-in succeeds where nothing is said."""

    def script(asked: Asked) -> Said:
        name = asked.path.rpartition(".")[2]
        return answers.get(name, Said(SESSION) if name == "createSession" else Said({}, 404))

    return script


def publish(transport: Transport, said: Said, *, attempts: int = 0) -> Outcome:
    """Publish once; ``putRecord`` answers ``said``."""
    with Liar(scripted(putRecord=said)) as liar:
        adapter = adapter_at(liar.url, transport)
        task = make_task(channel(), Post("The mill is open"), attempts=attempts)
        ready = adapter.step(task)
        assert isinstance(ready, Ready)
        outcome = adapter.publish(task, ready, make_permit(task))
        assert [asked.path for asked in liar.asked] == [LOG_IN, PUT]
    assert not [secret for secret in SECRETS if secret in repr(outcome)]
    return outcome
