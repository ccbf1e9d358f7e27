"""Every outcome there can be, for Hypothesis."""

from __future__ import annotations

from datetime import UTC

from hypothesis import strategies as st

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
)

_text = st.text(st.characters(exclude_categories=()), max_size=20)
_seconds = st.none() | st.floats(0, 1e6)
_answers = st.none() | st.builds(
    Answer,
    status=st.none() | st.integers(100, 599),
    headers=st.dictionaries(_text, _text, max_size=2),
    body=_text,
    sent=st.none() | st.integers(0, 10**6),
    error=st.none() | _text,
)
_reasons = st.sampled_from(Reason)

DEFERRALS = st.builds(
    Deferred, _reasons, _text, proof=st.sampled_from([Proof.NOT_SENT, Proof.REFUSED]),
    row=_text, retry_after=_seconds, rest_channel=st.booleans(),
    validated_before_storing=st.booleans(), answer=_answers,
)  # fmt: skip
DOUBTS = st.builds(Unknown, _reasons, _text, st.none() | _text, answer=_answers)

OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(
        Published,
        remote_id=st.text(min_size=1, max_size=20),
        permalink=st.none() | _text,
        at=st.none() | st.datetimes(timezones=st.just(UTC)),
        answer=_answers,
        not_before=_seconds,
    ),
    st.builds(
        Rejected, _reasons, _text, row=_text, validated_before_storing=st.booleans(),
        answer=_answers,
    ),
    DEFERRALS,
    st.builds(
        Unauthorized, _reasons, _text, row=_text, validated_before_storing=st.booleans(),
        answer=_answers,
    ),
    DOUBTS,
)  # fmt: skip
"""Text in them may hold anything a platform can put into JSON, NUL and surrogates included."""
