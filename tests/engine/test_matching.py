"""The two yardsticks of matching: what is ours beyond doubt, and what could be ours at all."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher.engine.evidence import Absent, Candidate, Found, Inconclusive
from publisher.engine.matching import (
    SHOWN,
    SKEW,
    WIDE_SKEW,
    Listing,
    Sought,
    could_be_ours,
    is_ours,
    match,
    normalised,
    resembles,
)

BEGAN = datetime(2026, 12, 7, 2, 0, tzinfo=UTC)
NOW = BEGAN + timedelta(minutes=3)
TEXT = "Open on Monday from nine: bring a friend, tea is on us."
SOUGHT = Sought(TEXT, BEGAN, NOW, sender_is_gone=True)
OURS = Candidate("101_1", TEXT, BEGAN + timedelta(seconds=2), "https://example.org/1", ours=True)
OTHER = Candidate("101_9", "Road works on the ring road", BEGAN + timedelta(seconds=9))


def listing(*posts: Candidate, trouble: str = "") -> Listing:
    return Listing(posts, complete=not trouble, trouble=trouble)


def test_finds_the_one_post_that_agrees_in_everything() -> None:
    evidence = match(SOUGHT, listing(OTHER, OURS), exhaustive=False)
    assert evidence == Found("101_1", "https://example.org/1", OURS.created_at)


@pytest.mark.parametrize(
    "post",
    [
        replace(OURS, ours=False),
        replace(OURS, created_at=BEGAN - SKEW - timedelta(seconds=1)),
        replace(OURS, created_at=NOW + SKEW + timedelta(seconds=1)),
        replace(OURS, text=TEXT + "!"),
        replace(OURS, text=TEXT[:30]),
        replace(OURS, text=""),
    ],
    ids=["another's mark", "too early", "too late", "another end", "cut", "no text"],
)
def test_one_thing_amiss_is_a_doubt_and_not_an_absence(post: Candidate) -> None:
    evidence = match(SOUGHT, listing(post), exhaustive=True)
    assert isinstance(evidence, Inconclusive)
    assert evidence.candidates == (post,)
    assert not evidence.clean


def test_a_post_bound_to_another_job_is_not_ours_and_keeps_absence_open() -> None:
    sought = replace(SOUGHT, bound=frozenset({"101_1"}))
    evidence = match(sought, listing(OURS), exhaustive=True)
    assert isinstance(evidence, Inconclusive)
    assert evidence.candidates == (OURS,)


def test_bound_posts_of_other_texts_do_not_hinder_absence() -> None:
    bound = replace(OURS, text=TEXT + " And cake.")
    sought = replace(SOUGHT, bound=frozenset({"101_1"}))
    assert match(sought, listing(bound), exhaustive=True) == Absent(1)


def test_two_that_agree_are_for_a_person() -> None:
    twin = replace(OURS, remote_id="101_2", ours=None)
    evidence = match(SOUGHT, listing(twin, OURS), exhaustive=True)
    assert isinstance(evidence, Inconclusive)
    assert set(evidence.candidates) == {twin, OURS}
    assert not evidence.clean


def test_the_same_post_on_two_pages_of_a_listing_is_one() -> None:
    assert isinstance(match(SOUGHT, listing(OURS, OURS), exhaustive=False), Found)


def test_a_listing_that_contradicts_itself_finds_nothing() -> None:
    edited = replace(OURS, text="Closed on Monday")
    evidence = match(SOUGHT, listing(OURS, edited), exhaustive=False)
    assert isinstance(evidence, Inconclusive)


def test_two_posts_without_text_are_told_apart_by_marks_alone() -> None:
    sought = replace(SOUGHT, text="")
    bare = replace(OURS, text="", ours=None)
    assert isinstance(match(sought, listing(bare), exhaustive=True), Inconclusive)
    assert isinstance(match(sought, listing(replace(bare, ours=True)), exhaustive=True), Found)


def test_absence_needs_an_exhaustive_whole_listing_and_a_sender_that_is_gone() -> None:
    here = listing(OTHER)
    assert match(SOUGHT, here, exhaustive=True) == Absent(1)
    for evidence in (
        match(SOUGHT, here, exhaustive=False),
        match(replace(SOUGHT, sender_is_gone=False), here, exhaustive=True),
    ):
        assert isinstance(evidence, Inconclusive)
        assert evidence.clean
        assert evidence.searched == 1
    cut = match(SOUGHT, listing(OTHER, trouble="it broke off"), exhaustive=True)
    assert cut == Inconclusive("it broke off", searched=1)


def test_a_find_in_half_a_listing_is_not_one() -> None:
    evidence = match(SOUGHT, listing(OURS, trouble="it broke off"), exhaustive=True)
    assert isinstance(evidence, Inconclusive)
    assert evidence.candidates == (OURS,)


def test_an_id_left_by_the_lost_answer_keeps_absence_open() -> None:
    strange = replace(OTHER, created_at=BEGAN - timedelta(days=2))
    assert match(SOUGHT, listing(strange), exhaustive=True) == Absent(1)
    sought = replace(SOUGHT, remote_handle=strange.remote_id)
    assert isinstance(match(sought, listing(strange), exhaustive=True), Inconclusive)


def test_last_week_does_not_count() -> None:
    old = replace(OURS, created_at=BEGAN - timedelta(days=7))
    assert match(SOUGHT, listing(old), exhaustive=True) == Absent(1)


def test_a_person_is_shown_a_few_candidates() -> None:
    many = [replace(OURS, remote_id=f"101_{n}") for n in range(50)]
    evidence = match(SOUGHT, listing(*many), exhaustive=False)
    assert isinstance(evidence, Inconclusive)
    assert len(evidence.candidates) == SHOWN


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Đã đăng", unicodedata.normalize("NFD", "Đã đăng")),
        ("می‌خواهم", "میخواهم"),
        ("line\r\nline", "line\nline"),
        ("  two  words ", "two words"),
        ("a\u200bb", "ab"),
        ("https://example.org/ă", unicodedata.normalize("NFD", "https://example.org/ă")),
        ("\u202bمن\u202c", "من"),
    ],
)
def test_what_platforms_rewrite_is_equal(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("👨‍👩‍👧", "👨👩👧"), ("Tea", "tea"), ("é", "e"), ("10 > 9", "10 < 9")],
)
def test_what_is_another_text_stays_another(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


@pytest.mark.parametrize(
    "shown",
    [
        TEXT[:20] + "… See more",
        "📣 " + TEXT.upper(),
        TEXT.replace("Monday", "Tuesday"),
        "Shared: " + TEXT + " #tea #friends",
        TEXT + " https://example.org/x?utm=1",
        "",
        "👍",
    ],
)
def test_what_a_platform_may_have_made_of_it_resembles_it(shown: str) -> None:
    assert resembles(TEXT, shown)


def test_two_long_texts_of_one_language_do_not_resemble_each_other() -> None:
    other = (
        "The library closes early this week because the heating is being repaired. Books that are "
        "due may be returned at the town hall, where somebody will take them until six in the "
        "evening. We are sorry for the trouble and thank everyone who helped to move the shelves."
    )
    mine = (
        "Our winter market starts on Friday with music, hot soup and a stall for children. Parking "
        "is behind the school, and the bus runs every ten minutes until midnight. Come early, the "
        "first hundred visitors get a cup to keep, and bring a lantern if you have one at home."
    )
    assert not resembles(mine, other)


texts = st.text(max_size=60)
near = st.integers(-7200, 7200).map(lambda s: BEGAN + timedelta(seconds=s))
candidates = st.builds(
    Candidate,
    remote_id=st.sampled_from([f"101_{n}" for n in range(6)]),
    text=st.one_of(texts, st.sampled_from([TEXT, TEXT[:25], TEXT + "!", f"  {TEXT} ", ""])),
    created_at=near,
    permalink=st.none(),
    ours=st.sampled_from([True, False, None]),
)
soughts = st.builds(
    Sought,
    text=st.one_of(texts, st.just(TEXT)),
    began_at=st.just(BEGAN),
    now=st.just(NOW),
    bound=st.frozensets(st.sampled_from([f"101_{n}" for n in range(6)]), max_size=3),
    remote_handle=st.one_of(st.none(), st.just("101_1")),
    sender_is_gone=st.booleans(),
)
listings = st.lists(candidates, max_size=8).map(lambda posts: Listing(tuple(posts)))


@given(sought=soughts, seen=listings, exhaustive=st.booleans())
def test_found_is_ours_alone_and_absent_is_nobodys(
    sought: Sought, seen: Listing, *, exhaustive: bool
) -> None:
    evidence = match(sought, seen, exhaustive=exhaustive)
    exact = {post for post in seen.candidates if is_ours(sought, post)}
    match evidence:
        case Found():
            assert {post.remote_id for post in exact} == {evidence.remote_id}
            assert evidence.remote_id not in sought.bound
        case Absent():
            assert exhaustive
            assert sought.sender_is_gone
            assert not any(could_be_ours(sought, post) for post in seen.candidates)
        case Inconclusive():
            shown = any(could_be_ours(sought, post) for post in seen.candidates)
            assert evidence.clean is not shown
            assert bool(evidence.candidates) is shown


@given(soughts, candidates)
def test_the_strict_yardstick_is_inside_the_wide_one(sought: Sought, post: Candidate) -> None:
    if is_ours(sought, post):
        assert could_be_ours(sought, post)


@given(sought=soughts, seen=listings, chance=st.randoms(), exhaustive=st.booleans())
def test_order_does_not_matter(
    sought: Sought, seen: Listing, chance: object, *, exhaustive: bool
) -> None:
    mixed = list(seen.candidates)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    one = match(sought, seen, exhaustive=exhaustive)
    other = match(sought, Listing(tuple(mixed)), exhaustive=exhaustive)
    if isinstance(one, Inconclusive) and isinstance(other, Inconclusive):
        assert set(one.candidates) == set(other.candidates)
        assert one.clean == other.clean
    else:
        assert one == other


@given(soughts, listings, candidates)
def test_one_post_more_never_makes_absent(sought: Sought, seen: Listing, post: Candidate) -> None:
    if not isinstance(match(sought, seen, exhaustive=True), Absent):
        more = Listing((*seen.candidates, post))
        assert not isinstance(match(sought, more, exhaustive=True), Absent)


@given(sought=soughts, seen=listings, exhaustive=st.booleans())
def test_half_a_listing_proves_nothing(sought: Sought, seen: Listing, *, exhaustive: bool) -> None:
    half = replace(seen, complete=False, trouble="it broke off")
    evidence = match(sought, half, exhaustive=exhaustive)
    assert isinstance(evidence, Inconclusive)
    assert not evidence.clean


@given(texts)
def test_normalising_twice_is_normalising_once(text: str) -> None:
    once = normalised(text)
    assert normalised(once) == once
    assert normalised(unicodedata.normalize("NFD", text)) == once
    assert normalised(f"\u200e {text}\r\n") == once


@given(texts, texts)
def test_resemblance_is_mutual_and_wider_than_equality(one: str, other: str) -> None:
    assert resembles(one, other) == resembles(other, one)
    if normalised(one) == normalised(other):
        assert resembles(one, other)
    assert resembles(one, f"{one} {other}")
    assert resembles(one, one[: len(one) // 2])


# What a person reads, and the very edges


def test_every_doubt_says_why_and_over_how_many_posts() -> None:
    mark = replace(SOUGHT, sender_is_gone=False)
    form = replace(OURS, text="Closed on Monday")
    twin = replace(OURS, remote_id="101_2")
    near = replace(OURS, text=TEXT + "!", ours=None)
    told = {
        "the page could not be read to the end": match(
            SOUGHT, Listing((OTHER,), complete=False), exhaustive=True
        ),
        "the page shows 101_1 in two forms": match(
            SOUGHT, listing(OURS, form, OTHER), exhaustive=True
        ),
        "2 posts on the page could be this one": match(
            SOUGHT, listing(OURS, twin, OTHER), exhaustive=True
        ),
        "something on the page resembles this post, but not beyond doubt": match(
            SOUGHT, listing(near, OTHER), exhaustive=True
        ),
        "nothing like it is on the page, but this platform's listing may leave posts out": match(
            SOUGHT, listing(OTHER), exhaustive=False
        ),
        "nothing like it is on the page yet, but it may still arrive": match(
            mark, listing(OTHER), exhaustive=True
        ),
    }
    searched = []
    for reason, evidence in told.items():
        assert isinstance(evidence, Inconclusive)
        assert evidence.reason == reason
        searched.append(evidence.searched)
    assert searched == [1, 3, 3, 2, 1, 1]


@pytest.mark.parametrize(("ours", "is_it"), [(True, True), (None, False), (False, False)])
def test_where_marks_are_shown_a_post_without_ours_is_not_ours(
    ours: bool | None,  # noqa: FBT001 - one of the mark's three values
    is_it: bool,  # noqa: FBT001 - the verdict on it
) -> None:
    sought = replace(SOUGHT, needs_mark=True)
    assert is_ours(sought, replace(OURS, ours=ours)) is is_it


@pytest.mark.parametrize(
    ("at", "is_it"),
    [
        (BEGAN - SKEW, True),
        (BEGAN - SKEW - timedelta(microseconds=1), False),
        (NOW + SKEW, True),
        (NOW + SKEW + timedelta(microseconds=1), False),
    ],
)
def test_the_clocks_may_differ_by_the_skew_and_not_by_more(
    at: datetime,
    is_it: bool,  # noqa: FBT001 - the verdict on it
) -> None:
    assert is_ours(SOUGHT, replace(OURS, created_at=at)) is is_it


def test_the_wide_yardstick_reaches_back_by_its_skew_and_no_further() -> None:
    edge = replace(OURS, created_at=BEGAN - WIDE_SKEW)
    assert could_be_ours(SOUGHT, edge)
    assert not could_be_ours(
        SOUGHT, replace(edge, created_at=edge.created_at - timedelta(microseconds=1))
    )


def test_an_id_that_was_left_is_about_that_post_alone() -> None:
    assert not could_be_ours(replace(SOUGHT, remote_handle="101_7"), OTHER)


def test_a_mark_of_ours_keeps_absence_open_under_any_text_and_anothers_does_not() -> None:
    assert could_be_ours(SOUGHT, replace(OTHER, ours=True))
    assert not could_be_ours(SOUGHT, replace(OTHER, ours=False))


def test_a_text_resembles_what_begins_alike_and_what_shares_three_tenths() -> None:
    head = "abcdefghijklmnopqrstuvwxyz0123456789"
    assert resembles(head + "".join("çđłøþ"[n % 5] for n in range(200)), head + "ж" * 200)
    # Of ten characters with pieces of five there are six pieces; of fourteen there are ten.
    # The one below shares three of ten, which is just enough; then two, which is not.
    assert resembles("0123456ABCDEFG", "xxxxx0123456yyyyy")
    assert not resembles("012345ABCDEFGH", "xxxxx012345yyyyyy")


def test_a_picture_alone_resembles_any_text_and_any_text_it() -> None:
    assert resembles("👍", "Road works")
    assert resembles("Road works", "👍")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Tea at https://example.org/abcdefghij nine", "Tea at nine"),
        ("https://a.example/qwertyuiop?as=df Tea", "www.other.test/zxcvbnmlkj Tea"),
        ("Tea at www.other.test/zxcvbnmlkj nine", "Tea at https://a.example/qwertyuiop nine"),
    ],
)
def test_an_address_that_a_platform_put_in_shortened_or_dropped_hides_no_resemblance(
    one: str, other: str
) -> None:
    assert resembles(one, other)
    assert resembles(other, one)


def test_an_address_alone_makes_no_resemblance() -> None:
    assert not resembles("Road works https://example.org/abcdefghij", "Tea at nine")
    assert not resembles("Tea at nine", "Road works https://example.org/abcdefghij")
