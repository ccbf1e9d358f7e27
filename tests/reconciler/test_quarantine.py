"""What a look for a job in quarantine leads to."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from publisher.engine.adapter import Adapter, Capabilities
from publisher.engine.evidence import Absent, Candidate, Evidence, Found, Inconclusive
from publisher.engine.job import JobId
from publisher.engine.ledger import Suspect
from reconciler.judge import Patience
from reconciler.quarantine import ItIsThere, LetItGo, LookAgain, judge_suspect, without_a_look

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
PATIENCE = Patience(first=30, longest=900, limit=4)
SUSPECT = Suspect(
    job_id=JobId(1), key="k", kind="post", channel_id=1, content="{}", content_sha256=b"",
    platform_key=None, progress=None, attempts=0, strict=True, looks=1, asked_at=None,
    quarantine_id=1, cause="restored", since=NOW - timedelta(hours=1),
    absent_after=NOW - timedelta(seconds=1), twins=0, now=NOW,
)  # fmt: skip
ALIKE = Candidate("9", "text", NOW, None, None)
CLEAN = Inconclusive("nothing like it", searched=3, clean=True)
UNSURE = Inconclusive("it could be this one", (ALIKE,), 3, clean=False)
FAILED = Inconclusive("the page did not answer")


def judged(evidence: Evidence, **changes: Any) -> object:  # noqa: ANN401 - the fields of Suspect
    return judge_suspect(replace(SUSPECT, **changes), evidence, PATIENCE)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("landed", [True, False])
def test_what_is_found_was_sent(*, strict: bool, landed: bool) -> None:
    after = NOW + timedelta(seconds=-1 if landed else 60)
    found = Found("9", "https://x.example/9")
    assert judged(found, strict=strict, absent_after=after) == ItIsThere("9", "https://x.example/9")


def test_of_two_jobs_with_one_text_a_person_says_which_it_is() -> None:
    finding = judged(Found("9"), twins=1)
    assert isinstance(finding, LookAgain)
    assert finding.pause is None


@pytest.mark.parametrize("strict", [True, False])
def test_a_proved_absence_lets_it_go_once_nothing_can_arrive(*, strict: bool) -> None:
    assert isinstance(judged(Absent(3), strict=strict), LetItGo)
    early = judged(Absent(3), strict=strict, absent_after=NOW + timedelta(seconds=200))
    assert isinstance(early, LookAgain)
    assert early.pause == 200


def test_a_clean_look_alone_frees_nothing_where_something_speaks_for_a_loss() -> None:
    finding = judged(CLEAN)
    assert isinstance(finding, LookAgain)
    assert finding.pause is None


def test_elsewhere_it_does_the_second_time() -> None:
    assert isinstance(judged(CLEAN, strict=False), LetItGo)
    again = judged(CLEAN, strict=False, looks=0)
    assert isinstance(again, LookAgain)
    assert again.pause == 30
    early = judged(CLEAN, strict=False, absent_after=NOW + timedelta(seconds=100))
    assert isinstance(early, LookAgain)
    assert early.pause == 100


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("evidence", [UNSURE, FAILED])
def test_an_unsure_look_never_frees_it(evidence: Inconclusive, *, strict: bool) -> None:
    again = judged(evidence, strict=strict)
    assert isinstance(again, LookAgain)
    assert again.pause == 60
    last = judged(evidence, strict=strict, looks=3)
    assert isinstance(last, LookAgain)
    assert last.pause is None


def adapter(**can: Any) -> Adapter:  # noqa: ANN401 - the fields of Capabilities
    capabilities = SimpleNamespace(
        **{"can_look": False, "repeat_is_atomic": False, "repeat_for": None, **can}
    )
    assert {*vars(capabilities)} <= {*dir(Capabilities)} | {*Capabilities.__annotations__}
    return SimpleNamespace(capabilities=lambda *_: capabilities)


def test_what_cannot_be_looked_for_waits_for_a_person_only_where_it_must() -> None:
    strict = without_a_look(SUSPECT, adapter())
    assert isinstance(strict, LookAgain)
    assert strict.pause is None
    assert isinstance(without_a_look(replace(SUSPECT, strict=False), adapter()), LetItGo)
    later = without_a_look(replace(SUSPECT, strict=False, loss_shows=True), adapter())
    assert isinstance(later, LookAgain)
    assert later.pause is None
    assert without_a_look(SUSPECT, adapter(can_look=True)) is None


def test_a_receiver_that_knows_it_by_its_key_takes_it_again() -> None:
    keyed = replace(SUSPECT, platform_key="e1")
    knows = adapter(repeat_is_atomic=True, repeat_for=float("inf"))
    assert isinstance(without_a_look(keyed, knows), LetItGo)
    assert isinstance(without_a_look(SUSPECT, knows), LookAgain)
