"""The pages a person looks at."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import PageUnderTest

NASTY = """<script>alert("x")</script> '&amp;' "><img src=x onerror=alert(1)> </p>"""


class _Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self._in_text = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if ("class", "text") in attrs:
            assert ("dir", "auto") in attrs
            self._in_text = True
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_text = self._in_text and tag != "p"

    def handle_data(self, data: str) -> None:
        if self._in_text:
            self.texts[-1] += data


def test_everything_is_escaped(page: PageUnderTest) -> None:
    page.control.add_pages([{"id": page.id, "name": NASTY}])
    post = page.feed(NASTY, link='https://example.org/"><script>').json()["id"]
    for path in ("/", f"/p/{page.id}", f"/a/{post}"):
        response = page.client.get(path)
        assert response.status_code == 200
        shown = _Page(response.text)
        assert not {"script", "img"} & set(shown.tags)
        assert "Sandbox: nothing leaves this machine" in response.text
        assert NASTY not in response.text
        assert shown.texts == ([] if path == "/" else [NASTY])


def test_a_wall_shows_the_newest_first_and_goes_on(page: PageUnderTest) -> None:
    for number in range(53):
        page.control.foreign_post(page.id, f"Post {number}")
    first = page.client.get(f"/p/{page.id}").text
    assert _Page(first).texts == [f"Post {number}" for number in range(52, 2, -1)]
    older = first.rpartition(f'href="/p/{page.id}?')[2].partition('"')[0]
    second = page.client.get(f"/p/{page.id}?{older}").text
    assert _Page(second).texts == ["Post 2", "Post 1", "Post 0"]
    assert "Older posts" not in second
    assert page.client.get(f"/p/{page.id}?before=rubbish").status_code == 404


def test_a_permalink_leads_to_its_post(page: PageUnderTest) -> None:
    post = page.feed("متن یک پست").json()["id"]
    permalink = page.call("GET", post, fields="permalink_url").json()["permalink_url"]
    html = page.client.get(permalink).text
    assert _Page(html).texts == ["متن یک پست"]
    assert post in html
    page.call("DELETE", post)
    gone = page.client.get(permalink)
    assert (gone.status_code, "was taken down" in gone.text) == (404, True)


@pytest.mark.parametrize(
    ("content", "type_"),
    [
        (b"\x89PNG\r\n\x1a\n1", "image/png"),
        (b"\xff\xd8\xff\xe01", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF1234WEBPVP8 ", "image/webp"),
    ],
)
def test_photos_are_shown(page: PageUnderTest, content: bytes, type_: str) -> None:
    files = {"source": ("photo", content)}
    made = page.call("POST", f"{page.id}/photos", files=files, caption="Seen").json()
    assert f'<img src="/media/{made["id"]}"' in page.client.get(f"/a/{made['post_id']}").text
    served = page.client.get(f"/media/{made['id']}")
    assert (served.headers["Content-Type"], served.content) == (type_, content)
    assert served.headers["X-Content-Type-Options"] == "nosniff"


def test_a_photo_named_by_address_is_not_fetched(page: PageUnderTest) -> None:
    path = f"{page.id}/photos"
    made = page.call("POST", path, url="https://example.org/p.jpg", caption="Far").json()
    html = page.client.get(f"/a/{made['post_id']}").text
    assert "https://example.org/p.jpg" in html
    assert "<img" not in html
    assert page.client.get(f"/media/{made['id']}").status_code == 404


@pytest.mark.parametrize("path", ["/p/9", "/a/9_9", "/media/../sandbox.jsonl", "/x", "/media/9"])
def test_what_is_not_there_is_not_found(page: PageUnderTest, path: str) -> None:
    assert page.send(f"GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n".encode()).status == 404


def test_walls_are_only_read(page: PageUnderTest) -> None:
    assert page.client.post("/", data={"x": "y"}).status_code == 405
    head = page.client.head("/")
    assert (head.status_code, head.content) == (200, b"")
