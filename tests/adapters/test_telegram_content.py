"""Telegram: what is refused before it may be approved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from publisher.adapters.telegram.formats import capabilities, problems
from publisher.engine.adapter import Promise
from publisher.engine.content import Media, Post
from tests.adapters.stand import photo_post

PHOTO = Media(kind="image", type="image/jpeg", sha256="a", size=5)


class TestContent:
    """What is refused before it may be approved."""

    @pytest.mark.parametrize(
        ("post", "codes"),
        [
            (Post("ok"), []),
            (Post("", link="https://e.org"), []),
            (Post("", media=(PHOTO,)), []),
            (Post(" \n"), ["empty"]),
            (Post("👩" * 2048), []),
            (Post("👩" * 2048 + "x"), ["text-too-long"]),
            (Post("x" * 1024, media=(PHOTO,)), []),
            (Post("x" * 1025, media=(PHOTO,)), ["text-too-long"]),
            (Post("👩" * 512 + "x", media=(PHOTO, PHOTO)), ["text-too-long"]),
            (Post("x", link="ftp://e.org"), ["link-not-an-address"]),
            (Post("x", link="https://[1"), ["link-not-an-address"]),
            (Post("x", link="https://e.org", media=(PHOTO,)), ["link-with-media"]),
            (Post("x", media=(PHOTO,) * 11), ["too-many-media"]),
            (Post("x", media=(replace(PHOTO, kind="video"),)), ["media-kind"]),
            (Post("x", media=(replace(PHOTO, type="image/gif"),)), ["media-type"]),
            (Post("x", media=(replace(PHOTO, size=0),)), ["media-size"]),
            (Post("x", media=(replace(PHOTO, size=None),)), ["media-size"]),
            (Post("x", media=(replace(PHOTO, sha256=None),)), ["media-missing"]),
            (Post("x", media=(replace(PHOTO, sha256=None, url="/etc/x"),)), ["media-missing"]),
        ],
    )
    def test_codes(self, post: Post, codes: list[str]) -> None:
        assert [problem.code for problem in problems(post.to_json())] == codes

    @pytest.mark.parametrize(
        ("post", "name", "limit", "media"),
        [
            (Post("x"), "text", 4096, 0),
            (Post("x", link="https://e.org"), "link", 4096, 0),
            (photo_post("x", "a"), "photo", 1024, 10),
            (photo_post("x", "a", "b"), "album", 1024, 10),
        ],
    )
    def test_capabilities_by_format(self, post: Post, name: str, limit: int, media: int) -> None:
        can = capabilities(post.to_json())
        assert (can.format, can.text_limit, can.media_limit) == (name, limit, media)
        assert can.promise is Promise.AT_MOST_ONCE_WITHOUT_EVIDENCE
        assert not can.can_look
        assert not can.listing_is_exhaustive
        assert can.repeat_for is None
