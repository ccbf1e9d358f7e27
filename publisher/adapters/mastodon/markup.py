"""From the HTML a server shows back to the text it was made of, where there is no source."""

from __future__ import annotations

from html.parser import HTMLParser


def text_of(html: str) -> str:
    """The text of a status: paragraphs apart, breaks as newlines, links at full length.

    Mastodon shortens a link by hiding parts of it in spans, which are text all the same.
    """
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return "".join(reader.pieces).strip("\n")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        """Begin a paragraph or a line."""
        if tag == "br":
            self.pieces.append("\n")
        elif tag in {"p", "blockquote", "pre", "ul", "ol"}:
            self.pieces.append("\n\n")
        elif tag in {"li", "div"}:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        self.pieces.append(data)
