"""The engine's small rules: contents, refusals, outcomes in writing, recognition, counting."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from publisher.engine import errors, recognition
from publisher.engine.content import ContentError, Happening, Letter
from publisher.engine.evidence import Candidate, Mismatch, NotThisPost
from publisher.engine.matching import Sought
from publisher.engine.outcome import (
    Answer,
    Deferred,
    Outcome,
    Proof,
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
    outcome_from_json,
    outcome_json,
)
from publisher.engine.tally import LATENESS_BOUNDS, Count, Tally

AT = datetime(2026, 12, 7, 2, 3, 4, tzinfo=UTC)

LETTER = Letter("ops@example.org", "Subject", "Text", AT, "<p>Text</p>", {"jobs": [1, 2]})
LETTER_JSON = (
    '{"about":{"jobs":[1,2]},"at":"2026-12-07T02:03:04+00:00","html":"<p>Text</p>",'
    '"subject":"Subject","text":"Text","to":"ops@example.org"}'
)
HAPPENING = Happening("job.settled", AT, {"job": 7})
HAPPENING_JSON = '{"at":"2026-12-07T02:03:04+00:00","data":{"job":7},"type":"job.settled"}'


def test_a_letter_and_back() -> None:
    assert LETTER.to_json() == LETTER_JSON
    assert Letter.from_json(LETTER_JSON) == LETTER
    plain = Letter("a@b", "S", "T", AT)
    assert Letter.from_json(plain.to_json()) == plain


def test_a_letter_without_what_may_be_missing() -> None:
    parts = json.loads(LETTER_JSON)
    del parts["html"], parts["about"]
    assert Letter.from_json(json.dumps(parts)) == Letter(
        "ops@example.org", "Subject", "Text", AT, None, {}
    )


@pytest.mark.parametrize("name", ["to", "subject", "text", "at"])
@pytest.mark.parametrize("value", [None, 5, ["x"]])
def test_no_letter(name: str, value: object) -> None:
    parts = json.loads(LETTER_JSON)
    said = "^not the content of a mail: it needs to, subject, text and at, an instant$"
    for broken in (parts | {name: value}, {k: v for k, v in parts.items() if k != name}):
        with pytest.raises(ContentError, match=said):
            Letter.from_json(json.dumps(broken))


@pytest.mark.parametrize(
    "more", [{"html": 5}, {"about": []}, {"at": "2026-12-07T02:03:04"}, {"at": "soon"}]
)
def test_no_letter_either(more: dict[str, object]) -> None:
    with pytest.raises(ContentError):
        Letter.from_json(json.dumps(json.loads(LETTER_JSON) | more))
    with pytest.raises(ContentError):
        Letter.from_json("[")


def test_a_happening_and_back() -> None:
    assert HAPPENING.to_json() == HAPPENING_JSON
    assert Happening.from_json(HAPPENING_JSON) == HAPPENING


@pytest.mark.parametrize("name", ["type", "at", "data"])
@pytest.mark.parametrize("value", [None, 5, ["x"]])
def test_no_happening(name: str, value: object) -> None:
    parts = json.loads(HAPPENING_JSON)
    said = "^not the content of a webhook: it needs type, data and at, an instant$"
    for broken in (parts | {name: value}, {k: v for k, v in parts.items() if k != name}):
        with pytest.raises(ContentError, match=said):
            Happening.from_json(json.dumps(broken))
    with pytest.raises(ContentError):
        Happening.from_json(json.dumps(parts | {"at": "2026-12-07T02:03:04"}))


def test_what_is_said_of_a_job_that_was_not_added() -> None:
    exists = errors.KeyConflict("key", 7, "failed")
    assert (exists.key, exists.job_id, exists.state) == ("key", 7, "failed")
    assert str(exists) == (
        "This job already exists: key is failed. Nothing was added. "
        "To post again on purpose, give a new time."
    )
    same = errors.DuplicateJob("key", 7, AT)
    assert (same.key, same.holder, same.lapses_at) == ("key", 7, AT)
    assert str(same) == (
        "key: same kind, content and queue as a job that is still current. Nothing was "
        "added. Allowed again at 2026-12-07 02:03:04 UTC or when that job is live."
    )
    under_way = errors.OpenJobExists("key", 7, "unknown")
    assert (under_way.key, under_way.holder, under_way.state) == ("key", 7, "unknown")
    assert str(under_way) == (
        "key: this post already has a job on this channel that is unknown. Nothing was "
        "added. Wait for its end, or cancel it while it is scheduled."
    )
    busy = errors.KeyBusy("key")
    assert busy.key == "key"
    assert str(busy) == "key is being added by someone else just now. Ask again in a moment."


def test_a_conflict_carries_its_code_and_the_state() -> None:
    plain = errors.Conflict("no")
    assert (str(plain), plain.code, plain.state, plain.exit_code) == ("no", "conflict", None, 4)
    named = errors.Conflict("no", code="too-late", state="missed")
    assert (named.code, named.state) == ("too-late", "missed")


ANSWER = Answer(409, {"x": "y"}, "body")
OUTCOMES: list[Outcome] = [
    Published("r1", "https://example.org/1", AT, answer=ANSWER),
    Published("r1"),
    Rejected(Reason.CONTENT_REFUSED, "no", "row", validated_before_storing=True, answer=ANSWER),
    Deferred(Reason.BUSY, "later", Proof.NOT_SENT, "row", 5.0, rest_channel=True),
    Unauthorized(Reason.NEEDS_RECONNECTING, "who", "row", answer=None),
    Unknown(Reason.NO_ANSWER, "?", "handle", ANSWER),
]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_outcome_goes_through_the_spool_unchanged(outcome: Outcome) -> None:
    written = json.loads(json.dumps(outcome_json(outcome)))
    assert written["kind"] == type(outcome).__name__
    again = outcome_from_json(written)
    assert again == outcome
    for name in ("reason", "proof", "at", "answer"):
        assert type(getattr(again, name, None)) is type(getattr(outcome, name, None))


SOUGHT = Sought("Grist from eight.", began_at=AT, now=AT + timedelta(minutes=5))


def post(
    text: str = "Grist from eight.", *, after: float = 1.0, ours: bool | None = None
) -> object:
    shown = Candidate("r1", text, AT + timedelta(seconds=after), None, ours)
    found = recognition.recognise(SOUGHT, shown)
    return "it" if found is shown else found


def refusal(code: Mismatch, why: str) -> NotThisPost:
    return NotThisPost(code, f"That link is not this post: {why}. Nothing was recorded.")


def test_what_nothing_speaks_against_is_taken() -> None:
    assert post() == "it"
    assert post(ours=True) == "it"
    assert post("Grist  from\u200b eight.") == "it"
    assert post(after=-60) == "it"


def test_too_early_by_more_than_the_clocks_may_differ() -> None:
    assert post(after=-61) == refusal(
        Mismatch.TOO_EARLY, "it was created at 02:02:03 UTC, before we sent at 02:03:04 UTC"
    )
    assert post(after=-86_400) == refusal(
        Mismatch.TOO_EARLY,
        "it was created at 2026-12-06 02:03:04 UTC, before we sent at 2026-12-07 02:03:04 UTC",
    )


def test_another_text_is_shown_where_it_parts() -> None:
    assert post("Grist from nine.") == refusal(
        Mismatch.TEXT_DIFFERS,
        "its text differs here: we sent “Grist from eight.”, it has “Grist from nine.”",
    )


def test_what_somebody_else_made_is_not_ours() -> None:
    why = "somebody else made it; another application or other media are on it"
    assert post(ours=False) == refusal(Mismatch.NOT_OURS, why)


def test_the_other_refusals_in_words() -> None:
    assert recognition.no_link("x" * 80, "Mastodon", "https://a/1") == refusal(
        Mismatch.NO_LINK,
        f"“{'x' * 80}” is no link to or id of a post on Mastodon, such as https://a/1",
    )
    cut = recognition.no_link("x" * 81, "Mastodon", "https://a/1")
    assert f"“{'x' * 79}…” is no link" in cut.message
    assert recognition.not_found("this Page") == refusal(
        Mismatch.NOT_FOUND,
        "no such post is on this Page; it was taken down, or it is somebody else's",
    )
    assert recognition.another("another Page (102)") == refusal(
        Mismatch.ANOTHER_PAGE, "it belongs to another Page (102)"
    )
    for why in ("it is down", "it is down.", "it is down. "):
        assert recognition.unreadable(why) == NotThisPost(
            Mismatch.UNREADABLE,
            "That link cannot be checked just now: it is down. Nothing was recorded.",
        )


@pytest.mark.parametrize(
    ("sent", "shown", "both"),
    [
        ("abc", "abd", ("abc", "abd")),
        ("a", "", ("a", "")),
        ("a b", "a  b c", ("a b", "a b c")),
        ("x" * 16 + "y" + "z" * 30, "x" * 16 + "q", ("x" * 16 + "y" + "z" * 23 + "…",
                                                     "x" * 16 + "q")),
        ("x" * 17 + "y", "x" * 17 + "q", ("…" + "x" * 16 + "y", "…" + "x" * 16 + "q")),
        ("a\u200bb", "ac", ("a[ZWSP]b", "ac")),
        ("\u200ba", "\u200eb", ("[ZWSP]a", "[LRM]b")),
        ("a\u200db", "ab", ("a[ZWJ]b", "ab")),
        ("cafe\u0301s", "café!", ("cafés", "café!")),
        ("a" + "z" * 24, "b", ("a" + "z" * 23 + "…", "b")),
        ("a" + "z" * 23, "b", ("a" + "z" * 23, "b")),
    ],
)  # fmt: skip
def test_where_two_texts_part(sent: str, shown: str, both: tuple[str, str]) -> None:
    assert recognition.difference(sent, shown) == both


def test_marks_and_control_characters_are_shown() -> None:
    assert recognition.visible_marks("a\u200db\x1b\x7f") == "a[ZWJ]b\u241b�"


def test_counts_by_what_and_labels() -> None:
    tally = Tally()
    tally.count(Count.OUTCOMES, "published", "fake")
    tally.count(Count.OUTCOMES, "published", "fake", by=2)
    tally.count(Count.LOOKS, "found")
    assert tally.counts(Count.OUTCOMES) == {("published", "fake"): 3}
    assert tally.counts(Count.LOOKS) == {("found",): 1}
    assert tally.counts(Count.RESCUES) == {}


def test_lateness_by_bucket_and_in_sum() -> None:
    tally = Tally()
    for seconds in (-5.0, 0.5, 1.0, 1.5, 90_000.0):
        tally.late(seconds, "fake")
    tally.late(7.0, "other")
    late = tally.lateness()
    assert set(late) == {"fake", "other"}
    assert late["fake"].buckets == (3, 1, *[0] * (len(LATENESS_BOUNDS) - 2), 1)
    assert late["fake"].seconds == 90_003.0
    assert late["other"].seconds == 7.0
    assert sum(late["other"].buckets) == 1
