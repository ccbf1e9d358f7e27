"""Mastodon: which refusals are believed without a look, and what a limit asks of the channel."""

from __future__ import annotations

import json

import pytest

from publisher.adapters.mastodon.formats import capabilities
from publisher.adapters.mastodon.refusals import classify
from publisher.adapters.mastodon.servers import Server, ServerKind
from publisher.engine.adapter import Promise
from publisher.engine.content import Post
from publisher.engine.outcome import Answer, Deferred, Proof
from publisher.transport import Reply


def reply(status: int, error: str, **headers: str) -> Reply:
    body = json.dumps({"error": error}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, named, body, Answer(status, named, body.decode()))


# status, words: row, whether it is refused before a status can exist, whether later ones count.
ROWS = [
    (401, "The access token is invalid", "mastodon/401-token", True, True),
    (401, "Something about you", "mastodon/401", False, True),
    (403, "This action is outside the authorized scopes", "mastodon/403-scope", True, True),
    (403, "Your login is disabled", "mastodon/403", False, True),
    (429, "Too many requests", "mastodon/429", True, True),
    (422, "has not finished processing", "mastodon/422-not-processed", True, False),
    (422, "Cannot attach more than 4 files", "mastodon/422-media", True, False),
    (422, "Validation failed: too long", "mastodon/422-text", True, False),
    (422, "Xác thực thất bại", "mastodon/422", False, False),
]


@pytest.mark.parametrize(("status", "words", "row", "validated", "later"), ROWS)
def test_what_each_row_proves(
    status: int, words: str, row: str, *, validated: bool, later: bool
) -> None:
    outcome = classify(reply(status, words), 0)
    assert outcome is not None
    assert outcome.row == row
    assert outcome.validated_before_storing is validated
    assert (classify(reply(status, words), 1) is not None) is later


def test_only_a_limit_rests_the_channel() -> None:
    limited = classify(reply(429, "Too many requests"), 0)
    assert isinstance(limited, Deferred)
    assert (limited.rest_channel, limited.retry_after, limited.proof) == (
        True, 300.0, Proof.REFUSED,
    )  # fmt: skip
    named = classify(reply(429, "Too many requests", retry_after="42"), 0)
    assert isinstance(named, Deferred)
    assert named.retry_after == 42.0
    busy = classify(reply(422, "has not finished processing"), 0)
    assert isinstance(busy, Deferred)
    assert (busy.rest_channel, busy.retry_after) == (False, None)


KEY_HONOURED = {ServerKind.MASTODON, ServerKind.PLEROMA, ServerKind.HOLLO}


@pytest.mark.parametrize("kind", ServerKind)
def test_what_each_program_is_trusted_with(kind: ServerKind) -> None:
    """Ten minutes short of the hour that a key lives; and one listing alone is known as whole."""
    server = Server(kind, "4.5.1")
    assert Server.kept(server.keep({})) == server
    can = capabilities(Post("Text").to_json(), server)
    keyed = kind in KEY_HONOURED
    assert can.repeat_for == (3000.0 if keyed else None)
    assert can.promise is (
        Promise.SAFE_WHILE_THE_KEY_LIVES if keyed else Promise.AT_MOST_ONCE_WITH_EVIDENCE
    )
    assert can.listing_is_exhaustive is (kind is ServerKind.MASTODON)
    assert (can.can_look, can.repeat_is_atomic) == (True, False)
