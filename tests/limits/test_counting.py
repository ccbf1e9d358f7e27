"""Length as each platform counts it, against the platforms' own examples and by properties."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher.engine.adapter import Capabilities, Promise, TextUnit
from publisher.limits.counting import (
    graphemes,
    length,
    urls,
    utf_8_bytes,
    utf_16_units,
    weights,
    with_urls_as,
    without_domains,
)

FAMILY = "👨‍👩‍👧‍👦"
VIETNAMESE = "Bản tin hôm nay: giữ gìn tiếng Việt"
PERSIAN = "می\u200cخواهم نامه\u200cهای شما را بخوانم؛ «سلام»"  # noqa: RUF001 - Persian
LONG = "https://example.org/" + "x" * 300
NFD = unicodedata.normalize("NFD", VIETNAMESE)

CAN = Capabilities(
    "text",
    "post",
    Promise.AT_MOST_ONCE_WITHOUT_EVIDENCE,
    can_look=False,
    listing_is_exhaustive=False,
    text_limit=10,
)
SERVER = replace(CAN, text_unit=TextUnit.GRAPHEMES, url_length=23, mentions_lose_domain=True)

any_text = st.text(st.characters(exclude_categories=()))
"""Half surrogate pairs and control characters included."""
vietnamese = st.text("aăâeêoôơuưyđ ạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ")


class TestGraphemes:
    @pytest.mark.parametrize(
        ("text", "count"),
        [
            ("", 0),
            ("abc", 3),
            (FAMILY, 1),
            ("🏳️‍🌈👩🏽‍🚀", 2),
            ("🇻🇳🇮🇷🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", 3),
            ("🇻🇳🇮", 2),
            ("a🇻🇳b🇮🇷", 4),
            ("giữ gìn", 7),
            (unicodedata.normalize("NFD", "giữ gìn"), 7),
            (unicodedata.normalize("NFD", "안녕하세요"), 5),
            ("今日は晴れ。", 6),
            ("𠮷野家", 3),
            ("می\u200cخواهم", 7),  # noqa: RUF001 - Persian
            ("a\r\nb\nc", 5),
            ("é\r\nb\nc", 5),
            ("\r\n\r\n", 2),
            ("Z̷̢a̴͓l̸g̶o", 5),
            ("\u0301", 1),
            ("1️⃣", 1),
            ("a\u200db", 2),
            ("\ud83d", 1),
        ],
    )
    def test_as_a_reader_sees_them(self, text: str, count: int) -> None:
        assert graphemes(text) == count

    @given(vietnamese)
    def test_a_letter_is_one_however_its_accents_are_written(self, text: str) -> None:
        composed = unicodedata.normalize("NFC", text)
        assert graphemes(unicodedata.normalize("NFD", text)) == graphemes(composed)
        assert graphemes(composed) == len(composed)

    @given(any_text)
    def test_never_more_than_code_points(self, text: str) -> None:
        assert (0 if not text else 1) <= graphemes(text) + (not text) <= len(text) + (not text)

    @given(any_text, any_text)
    def test_joining_two_texts_adds_nothing(self, one: str, other: str) -> None:
        together = graphemes(one + other)
        assert max(graphemes(one), graphemes(other)) <= together
        assert together <= graphemes(one) + graphemes(other)

    @given(st.text(st.characters(max_codepoint=127)))
    def test_ascii_counts_the_same_beside_other_letters(self, text: str) -> None:
        assert graphemes(f"{text}が") == graphemes(text) + 1


class TestUnits:
    @pytest.mark.parametrize(("text", "count"), [("", 0), ("é", 1), ("👩", 2), ("👨‍👩‍👧", 8)])
    def test_utf_16(self, text: str, count: int) -> None:
        assert utf_16_units(text) == count

    @given(st.text())
    def test_utf_16_is_what_an_encoder_writes(self, text: str) -> None:
        assert utf_16_units(text) == len(text.encode("utf-16-le")) // 2

    @given(st.text())
    def test_utf_8_is_what_an_encoder_writes(self, text: str) -> None:
        assert utf_8_bytes(text) == len(text.encode())

    def test_half_of_a_pair_is_three_bytes(self) -> None:
        assert utf_8_bytes("a\ud83d") == 4

    @pytest.mark.parametrize(
        ("unit", "count"),
        [
            (TextUnit.CHARACTERS, 7 + 3),
            (TextUnit.GRAPHEMES, 1 + 3),
            (TextUnit.UTF_16, 11 + 3),
            (TextUnit.BYTES, 25 + 7),
            (TextUnit.WEIGHTS, 2 + 5),
        ],
    )
    def test_length_counts_in_the_unit_of_the_platform(self, unit: TextUnit, count: int) -> None:
        assert length(f"{FAMILY}aế日", replace(CAN, text_unit=unit)) == count

    @given(any_text, st.sampled_from(TextUnit), st.sampled_from([CAN, SERVER]))
    def test_nothing_raises(self, text: str, unit: TextUnit, can: Capabilities) -> None:
        assert length(text, replace(can, text_unit=unit)) >= bool(text.strip("\r\n@"))


class TestWeights:
    """The platform's own conformance cases, and the trap in Vietnamese."""

    @pytest.mark.parametrize(
        ("text", "count"),
        [
            ("", 0),
            ("This is a test.", 15),
            ("http://test.com", 23),
            ("https://test.com", 23),
            ("test.com", 23),
            ("Test https://test.com test https://test.com test.com test", 86),
            ("\U00010000\U0010ffff", 4),
            ("저찀쯿쿿", 8),
            ("H\U0001f431☺", 5),
            (FAMILY, 2),
            ("🏳️‍🌈👩🏽‍🚀", 4),
            ("🇻🇳🇮🇷", 4),
            ("🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", 2),
            ("1️⃣", 2),
            ("“a” – b — c ’d’", 15),
            ("… ", 3),
            ("ê ơ ư đ ă â", 11),
            ("ế ạ ữ", 8),
            (unicodedata.normalize("NFD", "ế ạ ữ"), 8),
            (PERSIAN, len(PERSIAN)),
            ("今日は晴れ。", 12),
            ("see https://example.org/bản-tin?q=1.", 28),
            ("(https://example.org/a_(b))", 25),
            ("https://example.org/日本", 27),
            ("https://example.org?q=aế", 25),
            ("https://example.org:8080/a", 23),
            ("https://localhost/x", 19),
            ("http://192.168.0.1/a", 20),
            ("text.https://e.org", 28),
            ("xhttps://example.org", 20),
            ("bob@example.org", 15),
            ("@bob@social.example", 19),
            ("i.e. this, e.g. that", 20),
            ("a.vn, b.vn/x", 48),
            ("example.com.", 24),
            ("vnexpress.net/a.html", 23),
            ("example.com..x", 26),
            ("www.example", 11),
        ],
    )
    def test_cases(self, text: str, count: int) -> None:
        assert weights(text) == count

    @given(st.text())
    def test_between_one_and_two_for_each_code_point_in_nfc(self, text: str) -> None:
        plain = text.replace("/", "").replace(".", "")
        composed = unicodedata.normalize("NFC", plain)
        assert weights(plain) <= 2 * len(composed)
        assert weights(plain) >= graphemes(composed)

    @given(vietnamese)
    def test_nfc_and_nfd_weigh_the_same(self, text: str) -> None:
        assert weights(unicodedata.normalize("NFD", text)) == weights(text)

    @given(st.text("abcXYZ019-_", max_size=200))
    def test_a_url_weighs_the_same_however_long(self, path: str) -> None:
        assert weights(f"https://example.org/{path} end") == 27


class TestAddresses:
    """Mastodon's: a URL as 23, the domain of a mention not at all."""

    @pytest.mark.parametrize(
        ("text", "count"),
        [
            (LONG, 23),
            (f"see {LONG} and {LONG}", 4 + 23 + 5 + 23),
            ("HTTPS://e.org/", 23),
            ("https://e.org", 23),
            ("http://e.org?x=1", 23),
            ("https://e.org/bản-tin/日本", 23),
            ("(https://e.org/a).", 26),
            ("https://e.org/a_(b)", 23),
            ("https://e.org/a!?…", 26),
            ("«https://e.org/a»", 25),
            ("https://e.org/a\r\nb", 25),
            ("https://localhost/a", 19),
            ("xhttps://example.org", 20),
            ("日https://example.org", 24),
            ("https://", 8),
            ("https://.", 9),
            ("https:///e.org", 14),
            ("example.org", 11),
            ("ftp://example.org", 17),
            ("hello @bob@social.example!", 11),
            ("@bob@social.example.", 5),
            ("@a.b@c.d,@e", 7),
            ("mail bob@example.org", 20),
            ("@bob", 4),
            ("/@bob@social.example", 20),
            ("@bob@", 5),
        ],
    )
    def test_counts(self, text: str, count: int) -> None:
        assert length(text, SERVER) == count

    @given(st.text("abcXYZ019-_é日", max_size=200), st.integers(1, 300))
    def test_a_url_counts_the_same_however_long(self, path: str, size: int) -> None:
        can = replace(SERVER, url_length=size)
        assert length(f"a https://example.org/{path} end", can) == size + 6

    @given(st.text(st.characters(exclude_characters="@:")))
    def test_a_text_without_them_is_left_alone(self, text: str) -> None:
        assert with_urls_as(text, 23) == text
        assert without_domains(text) == text

    def test_urls_of_a_text(self) -> None:
        text = "One (https://e.org/a), two: http://f.org/b_(c). https://none"
        assert urls(text) == ("https://e.org/a", "http://f.org/b_(c)")


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "a.",
        "a@",
        "@a@",
        "@a.-",
        "https://",
        "https://a.1",
        "https://a.b.c ",
        ")",
        "#a",
        "é.",
        "a-",
    ],
)
@pytest.mark.timeout(60)
def test_no_text_takes_for_ever(piece: str) -> None:
    """What a pattern could go back over again and again; one of these took nine minutes."""
    text = piece * (300_000 // len(piece))
    for begun in (text, f"https://{text}", f"https://a.org/{text}", f"@a@{text}", f"a.{text}"):
        assert weights(begun) > 0
        assert length(begun, SERVER) > 0
