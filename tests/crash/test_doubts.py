"""The count of doubts that settled by themselves must be able to say that too few did."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from publisher.rehearsal.verdict import doubts
from publisher.rehearsal.verdict.doubts import Doubts, Settled, Share
from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.log import LoggedPost, LoggedRequest

AT = datetime(2026, 7, 1, tzinfo=UTC)
POST = LoggedPost(
    "1_1", "1", "feed", "c1-1", None, (), AT, None, "r", foreign=False, is_published=True,
    client_mutation_id=None,
)  # fmt: skip
OPEN = {"job_id": 1, "asked_reason": "nobody knows", "next_look_at": None}


def became(
    open_: list[dict[str, Any]],
    verdicts: list[tuple[str, str]],
    *,
    late: bool = False,
    platform: str = "facebook_pages",
    behaviour: Behaviour = Behaviour.LOSE_ANSWER,
    blind: bool = False,
    bound_to: int = 1,
) -> str | None:
    journal = {
        "doubts": open_,
        "verdicts": [{"job_id": 1, "who": who, "decision": what} for who, what in verdicts],
        "resolved": [{"job_id": 1}] if late else [],
        "bound": [{"remote_id": "1_1", "job_id": bound_to}],
    }
    request = LoggedRequest(
        "r", AT, "POST", "/", "1", "feed", publishes=True, message="c1-1", link=None, media=(),
        client_mutation_id=None, behaviour=behaviour,
    )  # fmt: skip
    job = {"id": 1, "platform": platform}
    return Doubts.read(journal).became(job, [POST], [request], is_blind=blind)


def test_a_doubt_is_settled_by_whoever_had_the_last_word_unless_a_person_had_any() -> None:
    assert became([], []) is None
    assert became([], [], late=True) == doubts.LATE
    assert became([], [("reconciler", "live")]) == doubts.FOUND
    assert became([], [("reconciler", "repeat")], late=True) == doubts.REPEATED
    assert became([], [("reconciler", "repeat"), ("ann", "attested")]) == doubts.PERSON
    assert became([], [("ann", "absent"), ("reconciler", "live")]) == doubts.PERSON


def test_a_doubt_that_stays_has_a_reason() -> None:
    assert became([OPEN], []) == "asked: nobody knows"
    assert became([OPEN], [], platform="telegram") == doubts.NO_EVIDENCE
    assert became([OPEN], [], behaviour=Behaviour.ACCEPT_WITH_TWIN) == doubts.TWINS
    assert became([OPEN], [], bound_to=2) == doubts.ANOTHERS
    assert became([OPEN], [], blind=True) == doubts.HIDDEN
    assert became([OPEN | {"next_look_at": AT}], []) == doubts.SOON


@pytest.mark.parametrize(
    ("platform", "settled", "of", "enough"),
    [
        ("facebook_pages", 95, 100, True),
        ("facebook_pages", 94, 100, False),
        ("bluesky", 99, 100, False),
        ("bluesky", 100, 100, True),
    ],
)
def test_how_many_are_enough(platform: str, settled: int, of: int, *, enough: bool) -> None:
    assert Share(platform, settled, of).is_enough is enough


def test_what_is_a_persons_by_design_counts_neither_way() -> None:
    settled = Settled()
    settled.counts.update({
        ("bluesky", doubts.FOUND): 3, ("bluesky", doubts.PERSON): 7,
        ("telegram", doubts.NO_EVIDENCE): 9, ("mastodon", doubts.TWINS): 1,
        ("mastodon", doubts.HIDDEN): 1,
    })  # fmt: skip
    shares = {share.platform: (share.settled, share.of) for share in settled.shares()}
    assert shares == {"all": (3, 4), "bluesky": (3, 3), "mastodon": (0, 1)}
    assert sum(settled.rest().values()) == 18
