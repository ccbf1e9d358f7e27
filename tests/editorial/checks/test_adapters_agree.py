"""What an editor is told is what the adapter would refuse before it sends: no more, no less."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher.bootstrap import describing_registry
from publisher.config import Settings
from publisher.editorial import checks
from publisher.editorial.checks import Severity, Variant
from publisher.engine.adapter import Adapter, TextUnit
from publisher.engine.content import Media, Post

REGISTRY = describing_registry(Settings(home=Path("nowhere")))
ADAPTERS = {name: REGISTRY.adapter(name) for name in REGISTRY.platforms}
PLATFORMS = sorted(name for name, one in ADAPTERS.items() if one.capabilities("").takes_posts)
OTHERS = sorted(ADAPTERS.keys() - set(PLATFORMS))
PHOTO = Media(kind="image", type="image/png", alt="A mill", sha256="a", size=5)
VIDEO = Media(kind="video", type="video/mp4", alt="A mill turns", sha256="v", size=5)

posts = st.builds(
    Post,
    st.text(max_size=50)
    | st.builds(lambda text, times: text * times, st.text(max_size=8), st.integers(0, 1_200)),
    st.none() | st.sampled_from(["https://example.org/a", "here", "https://e.org/" + "x" * 3_000]),
    st.lists(
        st.builds(
            Media,
            kind=st.sampled_from(["image", "video"]),
            type=st.sampled_from(["image/png", "image/tiff", "video/mp4"]),
            alt=st.sampled_from(["", "A mill", "x" * 1_501]),
            sha256=st.sampled_from([None, "a"]),
            size=st.sampled_from([None, 0, 5, 2_000_001, 10_000_001, 2_000_000_000]),
            url=st.sampled_from([None, "https://example.org/a.png"]),
        ),
        max_size=11,
    ).map(tuple),
)


def fixes(adapter: Adapter, post: Post) -> list[tuple[str, str, str]]:
    found = checks.problems(Variant(post), checks.of_channel(adapter, post, "Page A"))
    return [(p.field, p.code, p.message) for p in found if p.severity is Severity.FIX]


@pytest.mark.parametrize("platform", PLATFORMS)
@given(post=posts.filter(lambda post: "\0" not in post.text))
def test_one_place_judges_for_both(platform: str, post: Post) -> None:
    adapter = ADAPTERS[platform]
    told = [(p.field, p.code, p.message) for p in adapter.problems(post.to_json())]
    assert fixes(adapter, post) == told


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    "content",
    ['{"link":null,"media":[],"text":"a\\u0000b"}', '{"link":null,"media":[],"text":"a\\ud83d"}'],
)
def test_also_of_what_no_job_can_hold(platform: str, content: str) -> None:
    adapter = ADAPTERS[platform]
    (problem,) = adapter.problems(content)
    assert fixes(adapter, Post.from_json(content)) == [
        (problem.field, problem.code, problem.message)
    ]


@pytest.mark.parametrize("platform", OTHERS)
def test_where_no_posts_go_both_refuse(platform: str) -> None:
    adapter = ADAPTERS[platform]
    assert adapter.problems(Post("x").to_json())
    (problem,) = fixes(adapter, Post("x"))
    assert problem[:2] == ("channel", "channel-takes-no-posts")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_what_a_platform_says_of_itself_is_whole(platform: str) -> None:
    """A limit that was forgotten would refuse everything, or nothing."""
    for post in (Post("x"), Post("x", media=(PHOTO,)), Post("x", link="https://e.org")):
        can = ADAPTERS[platform].capabilities(post.to_json())
        assert can.name
        assert can.text_limit > 0
        assert can.text_unit in TextUnit
        assert "image" in can.media_kinds
        assert fixes(ADAPTERS[platform], post) == []
    can = ADAPTERS[platform].capabilities(Post("x", media=(PHOTO,)).to_json())
    assert can.media_limit > 0
    assert can.media_bytes > 0
    assert "image/png" in can.media_types
    assert bool(fixes(ADAPTERS[platform], Post("x", media=(VIDEO,)))) is (
        "video" not in can.media_kinds
    )


@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize(
    ("platform", "one", "limit", "media"),
    [
        ("bluesky", "👨‍👩‍👧", 166, False),  # 3,000 bytes: 18 for each, and two for 12 letters
        ("bluesky", "🇻🇳", 300, False),
        ("bluesky", "e\u0302\u0301", 300, False),
        ("bluesky", "ế", 300, False),
        ("mastodon", "👨‍👩‍👧", 500, False),
        ("mastodon", "https://example.org/abcdefghij ", 20, False),
        ("mastodon", "@bob@social.example ", 100, False),
        ("telegram", "日", 4_096, False),
        ("telegram", "👩", 2_048, False),
        ("telegram", "👩", 512, True),
        ("facebook_pages", "👩", 63_206, False),
    ],
)
def test_each_counts_as_its_platform_does(
    platform: str, one: str, limit: int, over: int, *, media: bool
) -> None:
    photos = (PHOTO,) if media else ()
    post = Post(one * (limit + over), media=photos)
    # What twenty links leave over is filled, so that the next letter is one too many.
    if platform == "mastodon" and one.startswith("https"):
        post = replace(post, text=one * 20 + "x" * (20 + over))
    codes = [code for _, code, _ in fixes(ADAPTERS[platform], post)]
    assert codes == (["text-too-long"] if over > 0 else [])
