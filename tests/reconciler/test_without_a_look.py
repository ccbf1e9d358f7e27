"""What cannot be looked at is repeated where its key makes that safe at any time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from publisher.adapters.mail.letters import CAPABILITIES as MAIL
from publisher.adapters.webhook.protocol import CAPABILITIES as WEBHOOK
from publisher.engine.sender import Sender
from reconciler.judge import AskAPerson, Case, Patience, RepeatIt, before_looking

NOW = datetime(2026, 12, 7, 2, 3, tzinfo=UTC)
PATIENCE = Patience(first=10, longest=60, limit=6)
ALIVE = Sender(7, "here")
CASE = Case(
    capabilities=WEBHOOK, sender=ALIVE, began_at=NOW, now=NOW, looks=0, latest=1, attempt=1
)  # fmt: skip


def test_a_webhook_is_repeated_with_growing_pauses_whoever_still_sends() -> None:
    pauses = []
    for sends in range(1, PATIENCE.limit):
        judged = before_looking(replace(CASE, latest=sends), PATIENCE)
        assert isinstance(judged, RepeatIt)
        assert judged.until is None
        pauses.append(judged.after)
    assert pauses == [10, 20, 40, 60, 60]
    assert all(one <= two for one, two in pairwise(pauses))


@pytest.mark.parametrize(
    "case",
    [
        replace(CASE, latest=PATIENCE.limit),
        replace(CASE, useful_until=NOW + timedelta(seconds=5)),
        replace(CASE, repeat_ended=True),
        replace(CASE, attempt=0),
        replace(CASE, capabilities=replace(WEBHOOK, repeat_is_atomic=False)),
        replace(CASE, capabilities=MAIL),
    ],
)
def test_otherwise_a_person_is_asked_at_once(case: Case) -> None:
    asked = before_looking(case, PATIENCE)
    assert isinstance(asked, AskAPerson)
    assert asked.pause is None
