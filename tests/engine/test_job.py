"""Keys that never change, ids that people type, and content that hashes to one thing."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher.engine.content import ContentError, Media, Post, canonical, digest
from publisher.engine.job import congruence, of_public_id, post_key, public_id

NUMBERS = st.integers(1, 2**40 - 1)


def test_a_key_names_post_channel_and_first_instant_in_utc() -> None:
    hanoi = timezone(timedelta(hours=7))
    at = datetime(2026, 12, 7, 9, 0, 0, 5, tzinfo=hanoi)
    assert post_key(12, 3, at) == "post:12/channel:3/at:2026-12-07T02:00:00.000005Z"
    assert post_key(12, 3, at) == post_key(12, 3, at.astimezone(UTC))


@given(NUMBERS)
def test_every_prefix_of_an_id_leads_back_to_its_number(number: int) -> None:
    name = public_id(number)
    assert len(name) == 10
    rule = None
    for digits in range(1, 11):
        rule = congruence(name[:digits].upper())
        assert rule is not None
        remainder, modulus = rule
        assert number % modulus == remainder
    assert rule == (number, 16**10)


@given(NUMBERS)
def test_a_whole_id_leads_back_to_its_job_and_a_part_of_it_to_none(number: int) -> None:
    name = public_id(number)
    assert of_public_id(name) == number
    assert of_public_id(name[:9]) is None


@pytest.mark.parametrize("name", ["0000000000", "123456789g", "123456789X", "00000000001"])
def test_what_names_no_job(name: str) -> None:
    assert of_public_id(name) is None


@given(NUMBERS.filter(lambda number: number < 2**40 - 70_000))
def test_neighbours_differ_in_their_first_digits(start: int) -> None:
    assert len({public_id(start + n)[:2] for n in range(256)}) == 256


@pytest.mark.parametrize("text", ["", "g", "X", "0123456789a", "-1", " "])
def test_what_is_no_prefix(text: str) -> None:
    assert congruence(text) is None


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(texts, st.none() | texts)
def test_content_reads_back_as_it_was(text: str, link: str | None) -> None:
    post = Post(text, link, (Media("image", "image/png", alt="x", sha256="ab", size=3),))
    content = post.to_json()
    assert Post.from_json(content) == post
    assert canonical(json.loads(content)) == content
    assert digest(content) == hashlib.sha256(content.encode()).digest()


@pytest.mark.parametrize("text", ["a\0b", "half \ud83d", "\udfff"])
def test_what_cannot_be_stored_is_no_content(text: str) -> None:
    with pytest.raises(ContentError):
        Post(text).to_json()


@given(st.text())
def test_a_backslash_is_no_nul(text: str) -> None:
    post = Post(f"\\u0000{text}".replace("\0", "").encode("utf-8", "ignore").decode())
    assert Post.from_json(post.to_json()) == post


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"text":"a","link":null}', '{"media":[{}]}'])
def test_what_is_no_content_of_a_post(content: str) -> None:
    with pytest.raises(ContentError, match="not the content of a post"):
        Post.from_json(content)
