"""How far a rehearsal has come: a line that moves on a terminal, one now and then elsewhere."""

from __future__ import annotations

import os
import sys
import time
from itertools import product
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO

from rich.cells import cell_len, set_cell_size

from publisher.rehearsal.report.phrases import lasted, paragraph, visible
from publisher.words import _

if TYPE_CHECKING:
    from publisher.rehearsal.conduct import Progress

_BARS: Final = (20, 10, 5)
"""Columns of the bar, as many as there is room for."""
_LEAST: Final = 11
"""Columns in which it is worth saying what struck last."""
_WIDTH: Final = 80
_PARTS: Final = 10
"""Where nothing moves, a line comes after each of so many parts of the way."""
_OFTEN: Final = 0.1
"""Seconds between two pictures."""
_GONE: Final = "\r\x1b[K"
"""Back to the beginning of the line, and nothing on it."""


def line(progress: Progress, width: int = _WIDTH) -> str:
    """One line with a bar, at most ``width`` columns wide."""
    count, left = _count(progress), _left(progress)
    what = visible(progress.last or progress.scenario)
    for tail, bar in product((f"   {left}" if left else "", ""), _BARS):
        head = f"  {_bar(progress, bar)} {count}"
        room = width - cell_len(head + tail)
        if room >= _LEAST and what:
            return f"{head}   {_cut(what, room - 3)}{tail}"
        if room >= 0:
            return head + tail
    return _cut(count, width)


def plain(progress: Progress) -> str:
    """The same without a bar."""
    share = f"{100 * progress.done // progress.of} %" if progress.of else ""
    parts = (_count(progress), share, visible(progress.scenario), _left(progress))
    return "  " + "   ".join(filter(None, parts))


def _count(progress: Progress) -> str:
    return f"{progress.done:,}/{progress.of:,}"


def _left(progress: Progress) -> str:
    if not progress.done or progress.done >= progress.of:
        return ""
    return _("about {time} left").format(time=lasted(progress.seconds_left))


def _bar(progress: Progress, width: int) -> str:
    full = min(width, width * progress.done // progress.of) if progress.of else 0
    return "█" * full + "░" * (width - full)


def _cut(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 1 else ""


class Ticker:
    """Shows progress on ``stream``, and says lines there that stay.

    On a terminal the moving line is taken away before anything else is said, and put back after
    it; everything that is written while it runs must go through ``say``. Elsewhere nothing moves:
    a plain line comes after each tenth of the way.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._moves = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._shown = ""
        self._drawn_at = 0.0
        self._told = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def watch(self, progress: Progress) -> None:
        """Show how far it is."""
        if not self._moves:
            self._tell(progress)
            return
        now = time.monotonic()
        if now - self._drawn_at < _OFTEN and progress.done < progress.of:
            return
        self._drawn_at = now
        self._draw(line(progress, self._width()))

    def say(self, text: object) -> None:
        """Say something that stays, in as many lines as it has."""
        shown = self._shown
        self.close()
        self._write("".join(f"{part}\n" for part in paragraph(str(text))))
        if shown:
            self._draw(shown)

    def close(self) -> None:
        """Take the moving line away."""
        if self._shown:
            self._write(_GONE)
            self._shown = ""

    def _draw(self, text: str) -> None:
        self._write(_GONE + text)
        self._shown = text

    def _tell(self, progress: Progress) -> None:
        part = _PARTS * progress.done // progress.of if progress.of else 0
        # What is tried again makes the way longer: nothing is said twice.
        if part > self._told:
            self._told = part
            self._write(plain(progress) + "\n")

    def _width(self) -> int:
        try:
            # Lines as wide as the terminal wrap on some.
            return os.get_terminal_size(self._stream.fileno()).columns - 1 or _WIDTH
        except OSError:
            return _WIDTH

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
