"""Every limit by its capability: at it, one under, one over; and each in its words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher import limits
from publisher.engine.adapter import Capabilities, Problem, Promise, Severity, TextUnit
from publisher.engine.content import Media, Post
from publisher.limits import Measures, counting
from publisher.limits.text import LARGEST

PHOTO = Media(kind="image", type="image/png", alt="A mill", sha256="a", size=5)
VIDEO = Media(kind="video", type="video/mp4", alt="A mill turns", sha256="v", size=5)
LINK = "https://example.org/a"
CAN = Capabilities(
    "text",
    "post",
    Promise.AT_MOST_ONCE_WITHOUT_EVIDENCE,
    can_look=False,
    listing_is_exhaustive=False,
    text_limit=300,
    name="Square",
    media_limit=2,
    media_types=("image/png", "video/mp4"),
    media_bytes=1_000_000,
    media_kinds=("image", "video"),
    alt_limit=100,
)


def found(post: Post, measured: dict[str, Measures] | None = None, **can: Any) -> list[Problem]:  # noqa: ANN401 - those of Capabilities
    return [*limits.problems(post, replace(CAN, **can), measured or {})]


def codes(post: Post, measured: dict[str, Measures] | None = None, **can: Any) -> list[str]:  # noqa: ANN401
    return [problem.code for problem in found(post, measured, **can)]


def words(post: Post, measured: dict[str, Measures] | None = None, **can: Any) -> str:  # noqa: ANN401
    (problem,) = found(post, measured, **can)
    return problem.message


class TestText:
    @pytest.mark.parametrize(
        ("unit", "one", "size"),
        [
            (TextUnit.CHARACTERS, "é", 1),
            (TextUnit.CHARACTERS, "e\u0301", 2),
            (TextUnit.GRAPHEMES, "👨‍👩‍👧‍👦", 1),
            (TextUnit.GRAPHEMES, "e\u0301", 1),
            (TextUnit.GRAPHEMES, "🇻🇳", 1),
            (TextUnit.UTF_16, "👩", 2),
            (TextUnit.UTF_16, "日", 1),
            (TextUnit.BYTES, "日", 3),
            (TextUnit.WEIGHTS, "日", 2),
            (TextUnit.WEIGHTS, "ế", 2),
            (TextUnit.WEIGHTS, "e\u0302\u0301", 2),
            (TextUnit.WEIGHTS, "ê", 1),
        ],
    )
    @pytest.mark.parametrize("over", [-1, 0, 1])
    def test_at_its_limit(self, unit: TextUnit, one: str, size: int, over: int) -> None:
        text = one * 10
        limit = 10 * size - over
        wanted = ["text-too-long"] if over > 0 else []
        assert codes(Post(text), text_unit=unit, text_limit=limit) == wanted

    @pytest.mark.parametrize("over", [-1, 0, 1])
    def test_at_its_limit_of_bytes(self, over: int) -> None:
        wanted = ["text-too-long"] if over > 0 else []
        assert codes(Post("日" * 10), text_bytes=30 - over) == wanted

    def test_as_the_wording_brief_has_it(self) -> None:
        assert words(Post("a" * 1_318)) == (
            "Square takes 300 characters as it counts them; this is 1,318. Shorten by 1,018, or "
            "write its own text."
        )
        assert words(Post("a" * 301), name="").startswith("This channel takes 300 characters")
        assert words(Post("a" * 301, media=(PHOTO,)), text_is_caption=True).startswith(
            "Square takes 300 characters under photos as it counts them; this is 301."
        )
        assert words(Post("a" * 301), text_unit=TextUnit.BYTES) == (
            "Square takes 300 bytes of text; this is 301. Shorten by 1, or write its own text."
        )
        assert words(Post("日" * 101), text_bytes=300) == (
            "Square takes 300 bytes of text; this is 303, since its characters are made of many "
            "parts. Shorten by 3 bytes, or write its own text."
        )

    def test_a_link_counts_where_it_stands(self) -> None:
        post = Post("a" * 290, link=LINK)
        assert codes(post) == []
        assert codes(post, link_in_text=True) == ["text-too-long"]
        assert codes(Post(f"{'a' * 278} {LINK}", link=LINK), link_in_text=True) == []
        assert codes(Post("a" * 275, link=LINK), link_in_text=True, url_length=23) == []
        assert codes(Post("a" * 276, link=LINK), link_in_text=True, url_length=23) == [
            "text-too-long"
        ]

    @pytest.mark.parametrize(
        ("post", "wanted"),
        [
            (Post(""), ["empty"]),
            (Post(" \n\t\u00a0"), ["empty"]),
            (Post("", link=LINK), []),
            (Post("", media=(PHOTO,)), []),
            (Post("\u200c"), []),
        ],
    )
    def test_empty(self, post: Post, wanted: list[str]) -> None:
        assert codes(post) == wanted

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("a\0b\0", "The text holds the character NUL at position 2, which cannot be stored"),
            ("ab\ud83d", "The text holds half of a surrogate pair at position 3, which is no"),
            ("\x07", "The text holds the control character U+0007 at position 1."),
            ("a\x85b\x07", "The text holds the control character U+0085 at position 2."),
            ("a\x7f", "The text holds the control character U+007F at position 2."),
        ],
    )
    def test_characters_nobody_can_be_shown(self, text: str, what: str) -> None:
        (problem,) = found(Post(text))
        assert (problem.field, problem.code) == ("text", "character-not-allowed")
        assert problem.what.startswith(what)
        assert problem.fix == "Take it out."

    def test_each_kind_of_them_is_told_once(self) -> None:
        assert len(found(Post("\0\x07\ud83d" * 50))) == 3

    def test_what_only_looks_like_them(self) -> None:
        assert codes(Post("a\tb\r\nc می\u200cخواهم \u202b\u2067x\u2069 👨‍👩‍👧 \ufeff\u2028")) == []  # noqa: RUF001 - Persian

    def test_past_counting(self) -> None:
        text = "日" * (LARGEST // 3)
        assert codes(Post(text)) == ["text-too-long"]
        assert words(Post(text + "日")) == (
            "The text has 300,003 bytes; no channel takes more than 300,000. Shorten it."
        )

    @pytest.mark.parametrize(
        ("text", "notes"),
        [
            ("#tiếng #việt", 0),
            ("#tie\u0302\u0301ng", 1),
            ("#می\u200cخواهم and #می\u200cخواهم", 1),  # noqa: RUF001 - Persian
            ("می\u200cخواهم #سلام", 0),  # noqa: RUF001 - Persian
            ("a#e\u0301 /#e\u0301", 0),
        ],
    )
    def test_a_hashtag_that_would_be_cut_is_a_note(self, text: str, notes: int) -> None:
        tags = found(Post(text), tags_end_early=True)
        assert [(tag.code, tag.severity) for tag in tags] == [("tag-cut", Severity.NOTE)] * notes
        assert found(Post(text)) == []

    def test_what_is_kept_of_a_hashtag_is_said(self) -> None:
        assert words(Post("#te\u0301t"), tags_end_early=True).startswith(
            "Square ends the hashtag #te\u0301t after #te."
        )


class TestLink:
    @pytest.mark.parametrize(
        "link",
        ["ftp://e.org", "e.org", "https://", "https:///a", "https://[1", "https://a b.org/",
         " https://e.org", "https://e.org\n", "https://e.org/\ud83d", "javascript:x", "",
         "https://e.org:0/", "https://e.org:99999/", "https://e.org/a\u2028b", "\ufeffhttps://e.org",
         "https://e.org/\x00", "mailto:a@e.org", "//e.org", "https://e.org/a\u00a0b"],
    )  # fmt: skip
    def test_no_address(self, link: str) -> None:
        assert codes(Post("x", link=link)) == ["link-not-an-address"]
        assert not limits.is_address(link)

    @pytest.mark.parametrize(
        "link",
        ["http://e.org", "HTTPS://E.ORG/", "https://e.org:8080/a?b=c#d", "https://[::1]/",
         "https://例え.jp/日本", "https://e.org/می\u200cشود"],
    )  # fmt: skip
    def test_an_address(self, link: str) -> None:
        assert codes(Post("x", link=link)) == []

    @pytest.mark.parametrize("over", [-1, 0, 1])
    @pytest.mark.parametrize("limit", [2_048, 800])
    def test_at_its_limit(self, over: int, limit: int) -> None:
        link = LINK + "b" * (limit - len(LINK) + over)
        wanted = ["link-too-long"] if over > 0 else []
        assert codes(Post("x", link=link), link_bytes=limit) == wanted

    def test_beside_media(self) -> None:
        post = Post("x", link=LINK, media=(PHOTO,))
        assert codes(post) == []
        assert "photos and videos" in words(post, link_with_media=False)
        assert "photos, not" in words(post, link_with_media=False, media_kinds=("image",))


class TestMedia:
    @pytest.mark.parametrize(
        ("media", "can", "wanted"),
        [
            ((PHOTO,), {}, []),
            ((PHOTO,) * 2, {}, []),
            ((PHOTO,) * 3, {}, ["too-many-media"]),
            ((PHOTO, VIDEO), {}, ["media-mixed"]),
            ((PHOTO, VIDEO), {"mixes_media": True}, []),
            ((PHOTO, VIDEO, PHOTO), {"mixes_media": True}, ["too-many-media"]),
            ((VIDEO,), {"media_kinds": ("image",)}, ["media-kind"]),
            ((PHOTO,), {"media_kinds": ("video",)}, ["media-kind"]),
            ((PHOTO,), {"media_kinds": ()}, ["media-kind"]),
            ((replace(PHOTO, kind="sound"),), {}, ["media-kind"]),
            ((replace(PHOTO, type="image/svg+xml"),), {}, ["media-type"]),
            ((replace(PHOTO, type=""),), {}, ["media-type"]),
            ((replace(PHOTO, size=0),), {}, ["media-size"]),
            ((replace(PHOTO, size=None),), {}, ["media-size"]),
            ((replace(PHOTO, size=1_000_000),), {}, []),
            ((replace(PHOTO, size=1_000_001),), {}, ["media-size"]),
            ((replace(PHOTO, sha256=None, url=LINK),), {}, ["media-missing"]),
            ((replace(PHOTO, sha256=None, url=LINK, size=None),), {"fetches_media": True}, []),
            ((replace(PHOTO, sha256=None, url="/a"),), {"fetches_media": True}, ["media-missing"]),
            ((replace(PHOTO, sha256=None),), {"fetches_media": True}, ["media-missing"]),
            ((replace(PHOTO, alt="é" * 100),), {}, []),
            ((replace(PHOTO, alt="é" * 101),), {}, ["alt-too-long"]),
            ((replace(PHOTO, alt="é" * 101),), {"alt_limit": None}, []),
            ((replace(PHOTO, alt="é" * 101),), {"alt_limit": 0}, []),
            ((replace(PHOTO, alt="\0"),), {}, ["character-not-allowed"]),
        ],
    )
    def test_codes(self, media: tuple[Media, ...], can: dict[str, Any], wanted: list[str]) -> None:
        assert codes(Post("x", media=media), **can) == wanted

    @pytest.mark.parametrize(
        ("width", "height", "can", "wanted"),
        [
            (100, 100, {"media_pixels": 10_000}, []),
            (100, 101, {"media_pixels": 10_000}, ["media-dimensions"]),
            (6_000, 4_000, {"media_sides": 10_000}, []),
            (6_000, 4_001, {"media_sides": 10_000}, ["media-dimensions"]),
            (20, 1, {"media_ratio": 20}, []),
            (21, 1, {"media_ratio": 20}, ["media-dimensions"]),
            (1, 21, {"media_ratio": 20}, ["media-dimensions"]),
            (9_999, 2, {"media_sides": 10_000, "media_ratio": 20}, ["media-dimensions"] * 2),
            (99_999, 99_999, {}, []),
        ],
    )
    def test_measures(
        self, width: int, height: int, can: dict[str, Any], wanted: list[str]
    ) -> None:
        post = Post("x", media=(PHOTO,))
        assert codes(post, {"a": Measures(width, height)}, **can) == wanted
        assert codes(post, {"b": Measures(width, height)}, **can) == []
        assert codes(post, {"a": Measures()}, **can) == []

    @pytest.mark.parametrize(("seconds", "wanted"), [(90, []), (90.1, ["media-duration"])])
    def test_seconds(self, seconds: float, wanted: list[str]) -> None:
        at = replace(VIDEO, sha256=None, url=LINK)
        measured = {LINK: Measures(seconds=seconds)}
        can = {"media_seconds": 90, "fetches_media": True}
        assert codes(Post("x", media=(at,)), measured, **can) == wanted

    def test_one_item_is_named_by_its_place(self) -> None:
        media = (PHOTO, replace(PHOTO, type="image/bmp", size=10_000_001, alt="x" * 101))
        assert [(p.field, p.message) for p in found(Post("x", media=media))] == [
            ("media.2", "Photo 2 is image/bmp; Square takes png, mp4. Convert it."),
            ("media.2", "Photo 2 is 10.1 MB; Square takes up to 1 MB. Replace it."),
            (
                "media.2.alt",
                "The alt text of photo 2 has 101 characters; Square takes 100. Shorten by 1.",
            ),
        ]

    @pytest.mark.parametrize(
        ("media", "can", "what"),
        [
            ((PHOTO,) * 3, {}, "Square takes 2 photos in one post; this has 3. Take 1 out."),
            ((VIDEO,) * 3, {}, "Square takes 2 videos in one post; this has 3. Take 1 out."),
            ((VIDEO,) * 2, {"media_limit": 1},
             "Square takes 1 video in one post; this has 2. Take 1 out."),
            ((VIDEO,), {"media_kinds": ("image",)}, "Square takes photos here, nothing else."),
            ((PHOTO,), {"media_kinds": ("video",)}, "Square takes videos here, nothing else."),
            ((PHOTO,), {"media_kinds": ()}, "Square takes no photos or videos here."),
            ((replace(PHOTO, kind="sound"),), {},
             "Square takes photos and videos here, nothing else."),
        ],
    )  # fmt: skip
    def test_words(self, media: tuple[Media, ...], can: dict[str, Any], what: str) -> None:
        assert words(Post("x", media=media), **can) == what


class TestExtent:
    """What the counter beside a text shows, and where the marked part begins."""

    @pytest.mark.parametrize(
        ("post", "can", "used", "excess_at"),
        [
            (Post(""), {}, 0, None),
            (Post("a" * 10), {}, 10, None),
            (Post("a" * 11), {}, 11, 10),
            (Post("👨‍👩‍👧" * 11), {"text_unit": TextUnit.GRAPHEMES}, 11, 50),
            (Post("👨‍👩‍👧" * 3), {}, 15, 10),
            (Post("aaaaaaa👨‍👩‍👧"), {}, 12, 7),
            (Post("aaaaaaaaa\r\nb"), {}, 12, 9),
            (Post("日" * 10), {"text_bytes": 17}, 10, 5),
            (Post("ab", link=LINK), {"link_in_text": True, "url_length": 6}, 10, None),
            (Post("abc", link=LINK), {"link_in_text": True, "url_length": 6}, 11, 2),
            (Post("abc", link=LINK), {"link_in_text": True, "url_length": 23}, 28, 0),
            (Post("a" * (LARGEST + 1)), {}, LARGEST + 1, 10),
        ],
    )
    def test_cases(self, post: Post, can: dict[str, Any], used: int, excess_at: int | None) -> None:
        extent = limits.extent(post, replace(CAN, text_limit=10, **can))
        assert (extent.used, extent.limit, extent.excess_at) == (used, 10, excess_at)

    @given(st.text(max_size=60), st.sampled_from(TextUnit), st.integers(1, 40))
    def test_what_is_left_fits_and_one_more_does_not(
        self, text: str, unit: TextUnit, limit: int
    ) -> None:
        text = text.replace("/", "").replace(".", "")
        can = replace(CAN, text_unit=unit, text_limit=limit)
        extent = limits.extent(Post(text), can)
        if extent.excess_at is None:
            assert extent.used <= limit
            return
        assert limits.length(text[: extent.excess_at], can) <= limit < extent.used
        more = next(end for end in counting.boundaries(text) if end > extent.excess_at)
        assert limits.length(text[:more], can) > limit


class TestEverything:
    def test_one_fault_hides_no_other(self) -> None:
        post = Post("a" * 301 + "\0", link="here", media=(PHOTO,) * 3)
        assert codes(post, link_with_media=False) == [
            "character-not-allowed", "link-not-an-address", "text-too-long", "link-with-media",
            "too-many-media",
        ]  # fmt: skip

    def test_where_no_post_can_go(self) -> None:
        (problem,) = found(Post(""), takes_posts=False, name="A mailbox")
        assert (problem.field, problem.code) == ("channel", "channel-takes-no-posts")
        assert problem.message == "A mailbox takes no posts. Choose another channel."

    @given(
        st.text(st.characters(exclude_categories=()), max_size=400),
        st.none() | st.text(st.characters(exclude_categories=()), max_size=40),
        st.lists(
            st.builds(
                Media,
                kind=st.sampled_from(["image", "video"]),
                type=st.sampled_from(["image/png", "video/mp4", ""]),
                alt=st.text(st.characters(exclude_categories=()), max_size=110),
                sha256=st.none() | st.just("a"),
                size=st.none() | st.integers(-1, 2_000_000),
                url=st.none() | st.text(max_size=20),
            ),
            max_size=4,
        ),
        st.sampled_from(TextUnit),
    )
    def test_nothing_raises_and_what_passes_can_be_frozen(
        self, text: str, link: str | None, media: list[Media], unit: TextUnit
    ) -> None:
        post = Post(text, link, tuple(media))
        problems = found(post, text_unit=unit, link_in_text=True, fetches_media=True)
        for problem in problems:
            assert problem.what.endswith(".")
            assert problem.fix == "" or problem.fix.endswith(".")
        assert limits.shape(post)
        if not problems:
            content = post.to_json()
            assert limits.of_content(content, lambda _: CAN) == ()

    def test_content_that_is_no_post(self) -> None:
        for content in ("", "null", '{"link":null,"media":[],"text":1}', '{"text":"x"}',
                        '{"link":1,"media":[],"text":"x"}'):  # fmt: skip
            (problem,) = limits.of_content(content, lambda _: CAN)
            assert problem.code == "content-unreadable"
            assert problem.message.startswith("This post cannot be read: ")

    def test_an_adapter_refuses_nothing_for_a_note(self) -> None:
        can = replace(CAN, tags_end_early=True)
        assert limits.of_content(Post("#e\u0301").to_json(), lambda _: can) == ()
