"""What an editor is told: from the post, its channel and the workspace."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from publisher.editorial import checks
from publisher.editorial.checks import Measures, Place, Severity, Variant, Wants
from publisher.engine.adapter import Capabilities
from publisher.engine.content import Media, Post
from tests.editorial.conftest import Stub

AT = datetime(2026, 12, 7, 2, tzinfo=UTC)
HCMC = ZoneInfo("Asia/Ho_Chi_Minh")
PHOTO = Media(kind="image", type="image/png", sha256="a", size=5)
VIDEO = Media(kind="video", type="video/mp4", sha256="v", size=5)


def place(post: Post, **facts: object) -> Place:
    return replace(checks.of_channel(Stub(), post, "Page A"), **facts)  # type: ignore[arg-type]


def told(post: Post, **facts: object) -> list[tuple[str, str, Severity]]:
    found = checks.problems(Variant(post), place(post, **facts))
    return [(problem.field, problem.code, problem.severity) for problem in found]


class TestAltTexts:
    def test_a_missing_one_is_a_note(self) -> None:
        post = Post("x", media=(PHOTO, replace(PHOTO, alt="A mill"), replace(VIDEO, alt=" \n")))
        assert told(post) == [
            ("media.1.alt", "alt-missing", Severity.NOTE),
            ("media.3.alt", "alt-missing", Severity.NOTE),
        ]
        found = checks.problems(Variant(post), place(post))
        assert not checks.stands_in_the_way(found)
        assert [problem.message for problem in found] == [
            "Photo 1 has no alt text. Say what it shows, for whoever cannot see it.",
            "Video 3 has no alt text. Say what it shows, for whoever cannot see it.",
        ]

    def test_and_a_fix_where_the_workspace_asks_for_it(self) -> None:
        post = Post("x", media=(PHOTO,))
        found = checks.problems(Variant(post), place(post), wants=Wants(alt_text=True))
        assert [problem.severity for problem in found] == [Severity.FIX]
        assert checks.stands_in_the_way(found)

    def test_and_nothing_where_the_platform_takes_none(self) -> None:
        post = Post("x", media=(PHOTO,))
        takes_none = place(post, can=replace(Stub().capabilities(""), alt_limit=0))
        assert checks.problems(Variant(post), takes_none, wants=Wants(alt_text=True)) == ()


class TestFirstComment:
    CAN = replace(Stub().capabilities(""), comment_limit=10)

    def told(self, comment: str | None, can: Capabilities = CAN) -> list[str]:
        found = checks.problems(Variant(Post("x"), comment), Place("Page A", can))
        assert all(problem.field == "first_comment" for problem in found)
        assert all(problem.severity is Severity.FIX for problem in found)
        return [problem.code for problem in found]

    @pytest.mark.parametrize(
        ("comment", "wanted"),
        [
            (None, []),
            ("a" * 9, []),
            ("a" * 10, []),
            ("a" * 11, ["text-too-long"]),
            (" ", ["empty"]),
            ("a\0", ["character-not-allowed"]),
            ("a" * 300_001, ["text-too-large"]),
        ],
    )
    def test_codes(self, comment: str | None, wanted: list[str]) -> None:
        assert self.told(comment) == wanted

    def test_where_none_can_be_made(self) -> None:
        can = replace(self.CAN, comment_limit=0)
        assert self.told("a", can) == ["first-comment-not-taken"]
        assert self.told(None, can) == []

    def test_words(self) -> None:
        (problem,) = checks.problems(Variant(Post("x"), "a" * 12), Place("Page A", self.CAN))
        assert problem.message == (
            "Stub takes 10 characters in a first comment as it counts them; this is 12. Shorten "
            "by 2."
        )


class TestChannel:
    @pytest.mark.parametrize(
        ("ends", "is_told"),
        [(timedelta(seconds=-1), True), (timedelta(0), True), (timedelta(seconds=1), False)],
    )
    def test_a_token_that_ends_before_the_time(self, ends: timedelta, *, is_told: bool) -> None:
        note = ("channel", "token-ends-before", Severity.NOTE)
        assert told(Post("x"), due_at=AT, expires_at=AT + ends) == [note] * is_told

    def test_without_a_time_or_an_end_there_is_nothing_to_tell(self) -> None:
        assert told(Post("x"), expires_at=AT) == []
        assert told(Post("x"), due_at=AT) == []

    @pytest.mark.parametrize(
        ("zone", "when"),
        [
            (HCMC, "Mon 7 Dec 2026, 09:00 Ho Chi Minh City"),
            (UTC, "Mon 7 Dec 2026, 02:00 UTC"),
            (ZoneInfo("America/New_York"), "Sun 6 Dec 2026, 21:00 New York"),
            (timezone(timedelta(hours=3, minutes=30)), "Mon 7 Dec 2026, 05:30 UTC+03:30"),
        ],
    )
    def test_its_end_is_written_in_the_zone(self, zone: tzinfo, when: str) -> None:
        at = place(Post("x"), due_at=AT + timedelta(days=1), expires_at=AT)
        (problem,) = checks.problems(Variant(Post("x")), at, of=zone)
        assert problem.message == (
            f"Our access to “Page A” ends on {when}, before this is due. Reconnect it before then, "
            "or choose an earlier time."
        )

    def test_the_last_instant_there_is(self) -> None:
        last = datetime.max.replace(tzinfo=UTC)
        at = place(Post("x"), due_at=last, expires_at=last)
        (problem,) = checks.problems(Variant(Post("x")), at, of=HCMC)
        assert "31 Dec 9999, 23:59" in problem.what

    def test_access_that_is_gone_is_told_alone(self) -> None:
        at = place(Post("x"), due_at=AT, expires_at=AT, needs_reconnecting=True)
        (problem,) = checks.problems(Variant(Post("x")), at)
        assert (problem.code, problem.severity) == ("channel-needs-reconnecting", Severity.NOTE)
        assert problem.message == (
            "“Page A” no longer accepts our access. Reconnect it: until then its posts wait and "
            "are not sent."
        )


class TestAltogether:
    def test_what_to_fix_comes_first(self) -> None:
        post = Post("x" * 2_001, link="here", media=(PHOTO,))
        at = place(post, due_at=AT, expires_at=AT)
        found = checks.problems(Variant(post, first_comment="y"), at)
        assert [(problem.code, problem.severity.value) for problem in found] == [
            ("link-not-an-address", "fix"),
            ("text-too-long", "fix"),
            ("first-comment-not-taken", "fix"),
            ("alt-missing", "note"),
            ("token-ends-before", "note"),
        ]

    def test_measures_are_found_by_hash(self) -> None:
        post = Post("x", media=(replace(PHOTO, alt="A mill"),))
        at = place(post, can=replace(Stub().capabilities(""), media_pixels=99))
        assert checks.problems(Variant(post), at) == ()
        (problem,) = checks.problems(Variant(post, measured={"a": Measures(10, 10)}), at)
        assert problem.code == "media-dimensions"

    def test_a_post_that_no_json_can_hold_is_judged_all_the_same(self) -> None:
        post = Post("a\0\ud83d", link="https://e.org/\0", media=(replace(PHOTO, alt="\ud83d"),))
        found = checks.problems(Variant(post), place(post))
        assert [problem.field for problem in found] == ["text", "text", "link", "media.1.alt"]

    def test_without_a_channel_only_what_no_platform_takes(self) -> None:
        post = Post("x" * 70_000 + "\0", link="here", media=(PHOTO, VIDEO))
        codes = [problem.code for problem in checks.anywhere(Variant(post))]
        assert codes == ["character-not-allowed", "link-not-an-address"]
        assert [problem.code for problem in checks.of_link("here")] == ["link-not-an-address"]
        assert checks.of_link(None) == checks.of_link("https://e.org") == ()
