"""Bluesky: record keys, places in bytes, and the shapes of pictures."""

from __future__ import annotations

import struct
import unicodedata
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher.adapters.bluesky import tid
from publisher.adapters.bluesky.facets import Kind, facets, handles, spans
from publisher.adapters.bluesky.shape import Shape, shape_of
from publisher.engine.job import post_key
from tests.adapters.conformance import CORPUS

NINE = datetime(2026, 7, 8, 9, tzinfo=UTC)
INSTANTS = st.datetimes(datetime(1970, 1, 1), datetime(2255, 1, 1)).map(  # noqa: DTZ001 - made aware here
    lambda at: at.replace(tzinfo=UTC)
)
PIECES = [
    " ", "\n", "\u00a0", "(", ")", ".", ",", "!", "«", "»", "#", "@", "\uff03", "/", "\u200c",
    "\u200d", "a", "é", "e\u0301", "ữ", unicodedata.normalize("NFD", "tiếng_việt"), "می‌خواهم",
    "日本語", "👨‍👩‍👧‍👦", "🇻🇳", "👩🏽‍🚀", "☀️", "42", "https://", "http://b.example/ữ?a=b&c=(d)",
    "https://example.org/x.", "@alice.test", "@Bob.Example.COM", "#tin", "#日本", "#می‌خواهم", "@a",
    "https:///x", "\ufeff", "\x00",
]  # fmt: skip
TEXTS = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=24).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    st.sampled_from([*CORPUS.values()]),
)


class TestKeys:
    @given(st.text(st.characters(exclude_categories=["Cs"])), INSTANTS)
    def test_valid_repeatable_and_of_its_second(self, key: str, at: datetime) -> None:
        minted = tid.mint(key, at)
        assert tid.is_valid(minted)
        assert minted == tid.mint(key, at.astimezone())
        assert tid.instant(minted).replace(microsecond=0) == at.replace(microsecond=0)

    @given(st.text(max_size=20), st.text(max_size=20), INSTANTS, st.integers(1, 10**9))
    def test_later_seconds_sort_later(self, one: str, other: str, at: datetime, more: int) -> None:
        later = at.replace(microsecond=0) + timedelta(seconds=more)
        if later.year < 2255:
            assert tid.mint(one, at) < tid.mint(other, later)

    def test_ten_thousand_posts_of_one_minute_have_keys_of_their_own(self) -> None:
        """Two hundred would collide by the ten bits of the clock alone."""
        minted = {tid.mint(post_key(post, 7, NINE), NINE) for post in range(10_000)}
        assert len(minted) >= 9_999

    def test_known_values(self) -> None:
        assert tid.mint("post:1/channel:2", NINE) == "3mq4qxsnxxgot"
        # As the reference library reads it, @atproto/common.
        at = datetime(2024, 11, 29, 13, 31, 29, 987608, tzinfo=UTC)
        assert tid.instant("3lc3ovqyk2s2k") == at

    @given(st.integers(1, 10**6), INSTANTS)
    def test_a_key_that_was_not_stored_is_found_in_the_jobs_own(
        self, post: int, at: datetime
    ) -> None:
        key = post_key(post, 3, at)
        assert tid.of_key(key) == tid.mint(key, at)

    @given(st.text(st.characters(exclude_categories=["Cs"])))
    def test_a_key_without_an_instant_is_still_the_same_every_time(self, key: str) -> None:
        assert tid.of_key(key) == tid.of_key(key)
        assert tid.is_valid(tid.of_key(key))

    @pytest.mark.parametrize(
        "text", ["", "3lc3ovqyk2s2", "zlc3ovqyk2s2k", "3lc3ovqyk2s21", "not-a-tid-000"]
    )
    def test_what_is_no_tid(self, text: str) -> None:
        assert not tid.is_valid(text)
        with pytest.raises(ValueError, match="no TID"):
            tid.instant(text)


class TestFacets:
    @given(TEXTS)
    def test_each_place_holds_what_it_names(self, text: str) -> None:
        content, reached = text.encode(), 0
        for span in spans(text):
            assert reached <= span.start < span.end <= len(content)
            reached = span.end
            piece = content[span.start : span.end].decode()
            match span.kind:
                case Kind.LINK:
                    assert piece == span.value
                    assert piece.lower().startswith(("http://", "https://"))
                case Kind.MENTION:
                    assert piece.lower() == f"@{span.value}"
                case Kind.TAG:
                    assert piece[1:] == span.value
                    assert piece[0] in "#\uff03"

    @given(TEXTS, TEXTS)
    def test_a_link_is_found_wherever_it_stands(self, before: str, after: str) -> None:
        link = "https://example.org/ữ/可?q=1"
        text = f"{before}\n{link}\n{after}"
        start = len(f"{before}\n".encode())
        found = {(span.start, span.end, span.value) for span in spans(text)}
        assert (start, start + len(link.encode()), link) in found

    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("see https://a.example/b.", [("link", 4, 23, "https://a.example/b")]),
            ("(https://a.example/b_(c))", [("link", 1, 24, "https://a.example/b_(c)")]),
            ("«https://a.example/»", [("link", 2, 20, "https://a.example/")]),
            ("http://a", [("link", 0, 8, "http://a")]),
            ("https:// https:///x xhttps://a.example example.org", []),
            ("🇻🇳 @an.test!", [("mention", 9, 17, "an.test")]),
            ("(@An.Test)", [("mention", 1, 9, "an.test")]),
            ("a@b.example @c @d. @-e.test @f.test@g.test", []),
            ("#tin, #2026 #a1 #! ##", [("tag", 0, 4, "tin"), ("tag", 12, 15, "a1")]),
            ("☀️ #می‌خواهم", [("tag", 7, 25, "می‌خواهم")]),
            ("#👨‍👩‍👧‍👦 x", [("tag", 0, 26, "👨‍👩‍👧‍👦")]),
            ("\uff03日本語。", [("tag", 0, 12, "日本語")]),
            ("#" + "a" * 64, [("tag", 0, 65, "a" * 64)]),
            ("#" + "a" * 65, []),
            ("#️⃣ 1", []),
            ("https://a.example/(@an.test)", [("link", 0, 28, "https://a.example/(@an.test)")]),
            ("https://a.example/#b @c.test", [
                ("link", 0, 20, "https://a.example/#b"), ("mention", 21, 28, "c.test"),
            ]),
        ],
    )  # fmt: skip
    def test_by_hand(self, text: str, wanted: list[tuple[str, int, int, str]]) -> None:
        assert [(str(s.kind), s.start, s.end, s.value) for s in spans(text)] == wanted

    def test_a_handle_of_nobody_is_left_as_text(self) -> None:
        text = "@an.test @nobody.test @AN.test"
        assert handles(text) == ("an.test", "nobody.test")
        made = facets(text, {"an.test": "did:plc:an", "nobody.test": None})
        assert [facet["index"] for facet in made] == [
            {"byteStart": 0, "byteEnd": 8},
            {"byteStart": 22, "byteEnd": 30},
        ]


def jpeg(*segments: bytes) -> bytes:
    return b"\xff\xd8" + b"".join(segments)


def segment(marker: int, content: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content


def exif(orientation: int, order: str = ">") -> bytes:
    mark = b"MM\0*" if order == ">" else b"II*\0"
    entry = struct.pack(f"{order}HHIHH", 0x0112, 3, 1, orientation, 0)
    return b"Exif\0\0" + mark + struct.pack(f"{order}IH", 8, 1) + entry


SIZE = segment(0xC2, b"\x08" + struct.pack(">HH", 30, 40) + b"\x03")


class TestShapes:
    @pytest.mark.parametrize(
        ("head", "shape"),
        [
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 3, 4), Shape(3, 4)),
            (b"GIF89a" + struct.pack("<HH", 3, 4), Shape(3, 4)),
            (b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + b"\x02\0\0\x03\0\0", Shape(3, 4)),
            (b"RIFF\0\0\0\0WEBPVP8L" + bytes(5) + struct.pack("<I", 2 | 3 << 14), Shape(3, 4)),
            (b"RIFF\0\0\0\0WEBPVP8 " + bytes(10) + struct.pack("<HH", 3, 4), Shape(3, 4)),
            (jpeg(SIZE), Shape(40, 30)),
            (jpeg(b"\xff", segment(0xE0, b"JFIF\0"), b"\xff\x01", SIZE), Shape(40, 30)),
            (jpeg(segment(0xE1, exif(1)), SIZE), Shape(40, 30)),
            (jpeg(segment(0xE1, exif(6)), SIZE), Shape(30, 40)),
            (jpeg(segment(0xE1, exif(8, "<")), SIZE), Shape(30, 40)),
            (jpeg(segment(0xE1, b"Exif\0\0XX"), SIZE), Shape(40, 30)),
            (jpeg(segment(0xE1, b"Exif\0\0MM\0*\xff\xff\xff\xff"), SIZE), Shape(40, 30)),
            (jpeg(segment(0xE0, b"x" * 70)), None),
            (b"RIFF\0\0\0\0WEBPANIM" + bytes(20), None),
            (b"GIF89a" + struct.pack("<HH", 0, 4), None),
            (b"BM" + bytes(30), None),
            (b"", None),
        ],
    )
    def test_by_hand(self, head: bytes, shape: Shape | None) -> None:
        assert shape_of(head) == shape

    @given(
        st.binary(max_size=80), st.sampled_from([b"", b"\xff\xd8", b"GIF89a", b"\x89PNG\r\n\x1a\n"])
    )
    def test_nothing_breaks_it(self, rest: bytes, start: bytes) -> None:
        shape_of(start + rest)
