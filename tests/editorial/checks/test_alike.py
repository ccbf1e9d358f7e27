"""What is like a post: texts and files apart, in words; and nothing that is not."""

from __future__ import annotations

import itertools
import unicodedata
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher.editorial.checks import Alike, Files, Severity, resembling
from publisher.editorial.checks.alike import NEAR, SHOWN, folded, percent, said
from publisher.engine.content import Letter, Media, Post
from publisher.engine.job import JobId, State
from publisher.engine.queries import Neighbour

AT = datetime(2026, 12, 7, 2, tzinfo=UTC)
BEFORE = datetime(2026, 11, 30, 2, tzinfo=UTC)
NOTICE = "Lịch cắt điện tuần này: thứ hai tại phường Một, thứ tư tại phường Hai, từ 8 đến 12 giờ"
ONE, TWO, THREE = (
    Media(kind="image", type="image/jpeg", sha256=name * 64, size=5) for name in "abc"
)
FILM = Media(kind="video", type="video/mp4", sha256="d" * 64, size=5)
_ids = itertools.count(1)


def neighbour(
    post: Post, state: State = State.PUBLISHED, at: datetime = BEFORE, post_id: int | None = None
) -> Neighbour:
    return Neighbour(JobId(next(_ids)), post_id, state, at, post.to_json())


def only(post: Post, *near: Neighbour) -> Alike:
    (one,) = resembling(post, near, AT)
    return one


class TestWords:
    @pytest.mark.parametrize(
        ("post", "other", "state", "words"),
        [
            (Post(NOTICE), Post(NOTICE), State.PUBLISHED,
             "The same text as a post live here on 30 Nov"),
            (Post(NOTICE, media=(ONE,)), Post(NOTICE, media=(TWO,)), State.PUBLISHED,
             "The same text as a post live here on 30 Nov, other photos"),
            (Post(NOTICE, media=(ONE,)), Post(NOTICE), State.PUBLISHED,
             "The same text as a post live here on 30 Nov, other photos"),
            (Post(NOTICE, media=(ONE, TWO)), Post(NOTICE, media=(TWO, ONE)), State.SCHEDULED,
             "The same text as a post scheduled here for 30 Nov, the same photos"),
            (Post(NOTICE, media=(ONE, TWO)), Post(NOTICE, media=(TWO, THREE)), State.CLAIMED,
             "The same text as a post scheduled here for 30 Nov, some of the photos"),
            (Post(NOTICE), Post(NOTICE), State.UNKNOWN,
             "The same text as a post that may be live here since 30 Nov"),
            (Post(NOTICE), Post(NOTICE), State.SENDING,
             "The same text as a post that may be live here since 30 Nov"),
            (Post(NOTICE, media=(FILM,)), Post(NOTICE, media=(ONE,)), State.PUBLISHED,
             "The same text as a post live here on 30 Nov, other photos or videos"),
            (Post("Other words", media=(FILM,)), Post(NOTICE, media=(FILM,)), State.PUBLISHED,
             "The same photos and videos as a post live here on 30 Nov, another text"),
            (Post("Other words", media=(ONE,)), Post(NOTICE, media=(ONE,)), State.PUBLISHED,
             "The same photos as a post live here on 30 Nov, another text"),
        ],
    )  # fmt: skip
    def test_as_pages_show_them(self, post: Post, other: Post, state: State, words: str) -> None:
        found = only(post, neighbour(other, state))
        assert found.words == words
        assert found.severity is Severity.NOTE

    def test_near_texts_say_how_near(self) -> None:
        other = NOTICE.replace("thứ tư", "thứ năm").replace("Hai", "Ba")
        found = only(Post(NOTICE, media=(ONE,)), neighbour(Post(other, media=(TWO,))))
        assert NEAR <= found.percent < 100
        assert found.words == f"{found.percent} % of a post live here on 30 Nov, other photos"
        assert not found.is_twin

    def test_days_are_the_zones_and_another_year_is_named(self) -> None:
        late = datetime(2026, 12, 31, 20, tzinfo=UTC)
        due = datetime(2027, 1, 10, tzinfo=UTC)
        near = [neighbour(Post(NOTICE), at=late)]
        (found,) = resembling(Post(NOTICE), near, due, of=ZoneInfo("Asia/Ho_Chi_Minh"))
        assert found.words == "The same text as a post live here on 1 Jan"
        (found,) = resembling(Post(NOTICE), near, due)
        assert found.words == "The same text as a post live here on 31 Dec 2026"


class TestWhatIsTold:
    def test_unlike_posts_are_not(self) -> None:
        other = neighbour(Post("Thời tiết hôm nay: nắng nhẹ, có mưa rào vài nơi vào buổi chiều"))
        assert resembling(Post(NOTICE), [other], AT) == ()

    def test_neither_texts_nor_files_that_are_not_there(self) -> None:
        assert resembling(Post(""), [neighbour(Post(""))], AT) == ()
        assert resembling(Post(" \n"), [neighbour(Post("\u200c"))], AT) == ()

    def test_pictures_alone(self) -> None:
        found = only(Post("", media=(ONE,)), neighbour(Post("", media=(ONE,))))
        assert (found.percent, found.files) == (0, Files.SAME)
        assert resembling(Post("", media=(ONE,)), [neighbour(Post("", media=(TWO,)))], AT) == ()

    def test_short_texts_only_when_they_are_equal(self) -> None:
        assert only(Post("Good morning"), neighbour(Post("good  Morning"))).is_twin
        assert resembling(Post("Good morning"), [neighbour(Post("Good morning!"))], AT) == ()

    def test_a_mail_is_passed_over(self) -> None:
        letter = Letter("a@example.org", "Hello", NOTICE, AT).to_json()
        near = [Neighbour(JobId(1), None, State.PUBLISHED, BEFORE, letter)]
        assert resembling(Post(NOTICE), near, AT) == ()

    def test_the_likest_first_and_no_more_than_help(self) -> None:
        almost = NOTICE.replace("Hai", "Ba")
        near = [
            neighbour(Post("x" * 30, media=(ONE,))),
            neighbour(Post(almost)),
            neighbour(Post(NOTICE, media=(TWO,)), at=AT - timedelta(days=20)),
            neighbour(Post(NOTICE, media=(TWO,)), at=AT + timedelta(days=1)),
            neighbour(Post(NOTICE, media=(ONE,)), at=AT - timedelta(days=25)),
        ]
        found = resembling(Post(NOTICE, media=(ONE,)), near, AT)
        assert len(found) == SHOWN
        assert [one.job_id for one in found] == [near[n].job_id for n in (4, 3, 2)]
        assert [one.is_twin for one in found] == [True, False, False]


class TestFolded:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Tin  MỚI\r\n hôm nay", "tin mới hôm nay"),
            (unicodedata.normalize("NFD", NOTICE), NOTICE),
            ("كتاب علي", "کتاب علی"),
            ("می\u200cخواهم", "میخواهم"),  # noqa: RUF001 - Persian
            ("خانهٔ", unicodedata.normalize("NFD", "خانهٔ")),
            ("ســلام", "سلام"),
            ("۱۴۰۵ و ٢٣", "1405 و 23"),
            ("Straße", "STRASSE"),
            ("a\u200eb\u00adc", "abc"),
            (
                "See https://Example.org/a/?utm_source=x&id=1&fbclid=y",
                "see https://example.org/a?id=1",
            ),
            ("http://www.example.org", "https://example.org/"),
            ("x https://example.org/?igsh=abc.", "x https://example.org."),
        ],
    )
    def test_what_readers_take_for_one(self, one: str, other: str) -> None:
        assert folded(one) == folded(other)
        assert percent(folded(one), folded(other)) == 100

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("👨‍👩‍👧", "👨👩👧"),
            ("a", "á"),
            ("https://example.org/a", "https://example.org/b"),
            ("https://example.org/?id=1", "https://example.org/?id=2"),
            ("https://example.org/A", "https://example.org/a#b"),
        ],
    )
    def test_what_they_do_not(self, one: str, other: str) -> None:
        assert folded(one) != folded(other)

    def test_a_link_counts_as_a_part_of_the_text_once(self) -> None:
        link = "https://example.org/a?utm_medium=z"
        assert said(Post(f"See {link}", link=link)) == said(Post("See https://example.org/a"))
        assert said(Post("See", link=link)) == said(Post("See https://example.org/a"))
        assert said(Post("", link="https://[")) == "https://["

    @given(st.text())
    def test_folding_twice_changes_nothing(self, text: str) -> None:
        assert folded(folded(text)) == folded(text)


class TestPercent:
    @given(st.text(max_size=80), st.text(max_size=80))
    def test_symmetric_and_whole_for_equal_texts_alone(self, one: str, other: str) -> None:
        assert percent(one, other) == percent(other, one)
        assert (percent(one, other) == 100) == (one == other != "")

    @given(st.text("abc ", min_size=20, max_size=300), st.integers(0, 299))
    def test_one_letter_more_is_near(self, text: str, at: int) -> None:
        at %= len(text)
        assert percent(text, f"{text[:at]}x{text[at:]}") >= 97

    @pytest.mark.timeout(20)
    def test_the_longest_texts_are_compared_in_time(self) -> None:
        one, other = "ab" * 150_000, "ba" * 150_000
        assert [percent(one, other + str(n)) for n in range(200)] == [99] * 200

    def test_equality_goes_beyond_what_nearness_is_judged_by(self) -> None:
        text = "y" * 6_000
        assert percent(text + "a", text + "b") == 99
        assert percent(text + "a", text + "a") == 100
