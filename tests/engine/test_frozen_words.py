"""What is kept as JSON reads back as it was: outcomes, mails and events; and keys in any zone."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings

from publisher.engine.content import ContentError, Happening, Letter
from publisher.engine.job import post_key, rehearsal_key
from publisher.engine.outcome import (
    Answer,
    Deferred,
    Outcome,
    Proof,
    Published,
    Reason,
    outcome_from_json,
    outcome_json,
)
from tests.engine.outcomes import OUTCOMES

AT = datetime(2026, 12, 7, 2, 0, tzinfo=UTC)


@settings(deadline=None)
@given(OUTCOMES)
def test_an_outcome_reads_back_as_it_was(outcome: Outcome) -> None:
    assert outcome_from_json(json.loads(json.dumps(outcome_json(outcome)))) == outcome


def test_words_of_the_closed_lists_are_read_back_as_members_of_them() -> None:
    kept = json.dumps(outcome_json(Deferred(Reason.BUSY, "no", Proof.REFUSED, "x")))
    read = outcome_from_json(json.loads(kept))
    assert isinstance(read, Deferred)
    assert read.reason is Reason.BUSY
    assert read.proof is Proof.REFUSED


def test_an_outcome_is_kept_by_its_kind_and_fields() -> None:
    answer = Answer(status=200, headers={"a": "b"}, body="{}", sent=3)
    assert outcome_json(Published("7", at=AT, answer=answer)) == {
        "kind": "Published", "remote_id": "7", "permalink": None, "at": AT.isoformat(),
        "answer": {"status": 200, "headers": {"a": "b"}, "body": "{}", "sent": 3, "error": None},
        "not_before": None,
    }  # fmt: skip
    assert outcome_json(Deferred(Reason.BUSY, "no", Proof.REFUSED, "x", 3.0)) == {
        "kind": "Deferred", "reason": "busy", "detail": "no", "proof": "refused", "row": "x",
        "retry_after": 3.0, "rest_channel": False, "validated_before_storing": False,
        "answer": None,
    }  # fmt: skip


def test_a_mail_is_kept_as_canonical_json() -> None:
    letter = Letter("a@example.org", "s", "t", AT, html="<p>t</p>", about={"job": 7})
    assert letter.to_json() == (
        '{"about":{"job":7},"at":"2026-12-07T02:00:00+00:00","html":"<p>t</p>","subject":"s",'
        '"text":"t","to":"a@example.org"}'
    )
    assert Letter.from_json(letter.to_json()) == letter
    plain = Letter("a@example.org", "s", "t", AT)
    assert Letter.from_json(plain.to_json()) == plain
    parts = json.loads(plain.to_json())
    least = {name: parts[name] for name in ("to", "subject", "text", "at")}
    assert Letter.from_json(json.dumps(least)) == plain
    assert Letter.from_json(json.dumps(least | {"html": None})) == plain
    why = "not the content of a mail: it needs to, subject, text and at, an instant"
    for broken in (
        *({name: value for name, value in least.items() if name != gone} for gone in least),
        *(least | {name: 7} for name in least), least | {"html": 7}, least | {"about": []}, [],
    ):  # fmt: skip
        with pytest.raises(ContentError) as error:
            Letter.from_json(json.dumps(broken))
        assert str(error.value) == why


def test_an_event_is_kept_as_canonical_json() -> None:
    event = Happening("post.published", AT, {"b": 1, "a": [2]})
    assert event.to_json() == (
        '{"at":"2026-12-07T02:00:00+00:00","data":{"a":[2],"b":1},"type":"post.published"}'
    )
    assert Happening.from_json(event.to_json()) == event
    parts = json.loads(event.to_json())
    why = "not the content of a webhook: it needs type, data and at, an instant"
    for broken in (
        *({name: value for name, value in parts.items() if name != gone} for gone in parts),
        *(parts | {name: 7} for name in parts), [],
    ):  # fmt: skip
        with pytest.raises(ContentError) as error:
            Happening.from_json(json.dumps(broken))
        assert str(error.value) == why


@pytest.fixture
def tehran(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose own zone is not UTC."""
    monkeypatch.setenv("TZ", "Asia/Tehran")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("tehran")
def test_a_key_is_in_utc_wherever_the_machine_is() -> None:
    assert post_key(1, 2, AT) == "post:1/channel:2/at:2026-12-07T02:00:00.000000Z"
    assert rehearsal_key("r", 1, 2, AT) == (
        "rehearsal:r:1/channel:2/at:2026-12-07T02:00:00.000000Z"
    )
