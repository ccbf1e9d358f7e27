"""The page for editors tells of every code and of every limit, as they are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from publisher.engine.content import Media, Post
from publisher.limits.link import LONGEST
from publisher.limits.text import LARGEST
from tests.editorial.checks.test_adapters_agree import ADAPTERS, PLATFORMS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "checks.md").read_text()
MEDIA = {
    "image": Media(kind="image", type="image/png", sha256="a", size=5),
    "video": Media(kind="video", type="video/mp4", sha256="v", size=5),
}


def codes() -> set[str]:
    """The second argument of every ``Problem`` that is made."""
    made = set()
    for folder in ("publisher/limits", "publisher/editorial/checks"):
        for path in (ROOT / folder).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Problem":
                    made.add(ast.literal_eval(node.args[1]))
    return made


def test_every_code_is_told_and_no_other() -> None:
    assert set(re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)) == codes()


def test_every_platform_has_its_limits() -> None:
    rows = dict(re.findall(r"^\| ([A-Z]\w+) \| (.*)", PAGE, re.MULTILINE))
    assert len(rows) == len(PLATFORMS)
    for platform in PLATFORMS:
        adapter = ADAPTERS[platform]
        can = adapter.capabilities(Post("x").to_json())
        row = rows[can.name]
        assert f"{can.text_limit:,}" in row
        assert can.text_bytes is None or f"{can.text_bytes:,} bytes" in row
        assert can.url_length is None or f"a URL is {can.url_length}" in row
        assert can.link_in_text is ("behind the text" in row)
        for kind in can.media_kinds:
            with_one = adapter.capabilities(Post("x", media=(MEDIA[kind],)).to_json())
            noun = "video" if kind == "video" else "photos"
            size = f"{with_one.media_bytes / 1e6:,.0f} MB"
            assert f"{with_one.media_limit} {noun} of {size}" in row
            assert f"{with_one.text_limit:,}" in row
            assert with_one.link_with_media is ("not beside" not in row)


def test_the_bounds_of_all() -> None:
    assert f"{LARGEST:,} bytes" in PAGE
    assert f"{LONGEST:,} bytes" in PAGE
