"""Mastodon: what is refused before it may be approved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from publisher.adapters.mastodon.formats import capabilities, problems, status_text
from publisher.adapters.mastodon.markup import text_of
from publisher.engine.content import Media, Post
from tests.adapters.stand import photo_post

PHOTO = Media(kind="image", type="image/jpeg", sha256="a", size=5)
VIDEO = Media(kind="video", type="video/mp4", sha256="v", size=5)
LINK = "https://example.org/" + "x" * 300


class TestProblems:
    """Each has its code, and says what to do."""

    @pytest.mark.parametrize(
        ("post", "codes"),
        [
            (Post("ok"), []),
            (Post("", link="https://example.org"), []),
            (Post("", media=(PHOTO,)), []),
            (Post("", media=(VIDEO,)), []),
            (Post("x", link="https://example.org", media=(PHOTO,)), []),
            (Post(" \n"), ["empty"]),
            (Post("x" * 476, link="https://example.org"), ["text-too-long"]),
            (Post("x" * 475, link="https://example.org"), []),
            (Post("x" * 476 + " " + LINK), []),
            (Post("x" * 477 + " " + LINK), ["text-too-long"]),
            (Post("👨‍👩‍👧‍👦" * 500), []),
            (Post("👨‍👩‍👧‍👦" * 501), ["text-too-long"]),
            (Post("x", link="ftp://example.org"), ["link-not-an-address"]),
            (Post("x", link="https://[1"), ["link-not-an-address"]),
            (Post("x", media=(PHOTO, VIDEO)), ["media-mixed"]),
            (Post("x", media=(VIDEO, VIDEO)), ["too-many-media"]),
            (Post("x", media=(replace(PHOTO, type="image/tiff"),)), ["media-type"]),
            (Post("x", media=(replace(PHOTO, size=0),)), ["media-size"]),
            (Post("x", media=(replace(PHOTO, size=None),)), ["media-size"]),
            (Post("x", media=(replace(PHOTO, sha256=None, url="https://x.org/a"),)),
             ["media-missing"]),
            (Post("x", media=(replace(PHOTO, kind="sound"),)), ["media-kind"]),  # type: ignore[arg-type]
        ],
    )  # fmt: skip
    def test_codes(self, post: Post, codes: list[str]) -> None:
        assert [problem.code for problem in problems(post.to_json())] == codes

    def test_too_long_reads_as_the_wording_brief_has_it(self) -> None:
        (problem,) = problems(Post("a" * 518).to_json())
        assert problem.message == (
            "Mastodon takes 500 characters as it counts them; this is 518. Shorten by 18, or "
            "write its own text."
        )

    @pytest.mark.parametrize(
        ("post", "name", "media"),
        [
            (Post("x"), "text", 0),
            (Post("x", link="https://example.org"), "link", 0),
            (photo_post("x", "a"), "photo", 4),
            (photo_post("x", "a", "b"), "photos", 4),
            (Post("x", media=(VIDEO,)), "video", 1),
        ],
    )
    def test_capabilities_by_format(self, post: Post, name: str, media: int) -> None:
        can = capabilities(post.to_json(), None)
        assert (can.format, can.media_limit) == (name, media)


class TestText:
    """What is sent for a link, and what HTML is read as."""

    @pytest.mark.parametrize(
        ("post", "text"),
        [
            (Post("  as it is \r\n"), "  as it is \r\n"),
            (Post("See", link="https://e.org"), "See\n\nhttps://e.org"),
            (Post("See https://e.org now", link="https://e.org"), "See https://e.org now"),
            (Post("", link="https://e.org"), "https://e.org"),
            (Post(" ", link="https://e.org"), "https://e.org"),
        ],
    )
    def test_link_stands_in_the_text(self, post: Post, text: str) -> None:
        assert status_text(post) == text

    @pytest.mark.parametrize(
        ("html", "text"),
        [
            ("", ""),
            ("<p>one<br>two</p><p>three &amp; four</p>", "one\ntwo\n\nthree & four"),
            ('<p><a href="x"><span class="invisible">https://</span>e.org</a></p>',
             "https://e.org"),
            ("<p>unclosed <b>bold", "unclosed bold"),
            ("a <!-- hidden --> b", "a  b"),
            ("<ul><li>one</li><li>two</li></ul>", "one\ntwo"),
            ("&lt;p&gt; &#128104;", "<p> 👨"),
        ],
    )  # fmt: skip
    def test_text_of_html(self, html: str, text: str) -> None:
        assert text_of(html) == text
