"""A row that may become a post: its channel, time and content, or everything wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from publisher.editorial import checks, times
from publisher.editorial.channels import Directory
from publisher.editorial.checks import Problem, Severity, Variant
from publisher.editorial.imports.attachments import Attached, Attachments
from publisher.editorial.imports.columns import COLUMNS
from publisher.editorial.imports.fault import Fault
from publisher.editorial.imports.row import Row
from publisher.editorial.media import MediaFile
from publisher.editorial.spelling import is_one_line
from publisher.editorial.times import Moment, TimeRefused
from publisher.engine.content import Post
from publisher.engine.errors import NotFound
from publisher.engine.job import Channel
from publisher.engine.registry import Registry

_REF_LIMIT: Final = 200
_CONTENT: Final = frozenset({"text", "link", "media", "alt"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row with nothing wrong by itself. ``content`` is ``post`` as it would be frozen.

    ``notes``: what is worth knowing of it; they keep it from nothing.
    """

    line: int
    ref: str
    channel: Channel
    moment: Moment
    post: Post = field(repr=False)
    content: str = field(repr=False)
    files: tuple[MediaFile, ...] = ()
    notes: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Bad:
    """A row that cannot be imported, with every reason found."""

    line: int
    ref: str
    faults: tuple[Fault, ...]


class Desk:
    """Judges rows, one by one, by what was true when the import began."""

    def __init__(
        self,
        directory: Directory,
        registry: Registry,
        attachments: Attachments,
        *,
        now: datetime,
        useful_for: timedelta,
        useful_on: Mapping[int, timedelta] | None = None,
        described: Collection[int] = (),
    ) -> None:
        """``useful_on``: by channel id, where a channel has its own instead of ``useful_for``.

        ``described``: ids of channels that want an alt text for every picture and video.
        """
        self._directory = directory
        self._registry = registry
        self._attachments = attachments
        self._now = now
        self._useful_for = useful_for
        self._useful_on = useful_on or {}
        self._described = frozenset(described)

    def judge(self, row: Row) -> Candidate | Bad:
        """Check everything about a row that can be read."""
        faults = [*row.faults]
        if not row.is_whole:
            return Bad(row.line, row.ref, tuple(faults))
        broken = {fault.column for fault in faults}
        faults.extend(fault for fault in _ref_faults(row.ref) if "ref" not in broken)
        channel = self._channel(row["channel"], faults, broken)
        moment = self._moment(row, channel, faults, broken)
        attached = Attached() if broken & {"media", "alt"} else self._attached(row, faults)
        post = Post(row["text"], row["link"] or None, attached.media)
        notes: list[Fault] = []
        if not broken & _CONTENT and not attached.faults:
            self._content(post, channel, faults, notes)
        elif "link" not in broken:
            # It can be judged by itself, whatever else cannot be read.
            faults.extend(as_fault(problem) for problem in checks.of_link(post.link))
        if faults or channel is None or moment is None:
            return Bad(row.line, row.ref, tuple(sorted(faults, key=_place)))
        content = post.to_json()
        return Candidate(
            row.line, row.ref, channel, moment, post, content, attached.files, tuple(notes)
        )

    def _channel(self, cell: str, faults: list[Fault], broken: set[str]) -> Channel | None:
        if "channel" in broken:
            return None
        if not cell.strip():
            names = [channel.name for channel in self._directory.channels[:5]]
            fix = f"Give a name or id, such as {names[0]}." if names else "Connect one first."
            faults.append(Fault("channel", "Is empty.", fix, "channel-missing"))
            return None
        try:
            return self._directory.find(cell)
        except NotFound as error:
            what, _, fix = str(error).partition(". ")
            faults.append(Fault("channel", f"{what}.", fix, "channel-unknown"))
            return None

    def _moment(
        self, row: Row, channel: Channel | None, faults: list[Fault], broken: set[str]
    ) -> Moment | None:
        if broken & {"publish_at", "zone"}:
            return None
        written, zone = row["publish_at"], row["zone"]
        useful_for = self._useful_for
        if channel is not None:
            useful_for = self._useful_on.get(channel.id, useful_for)
        try:
            return times.read(written, zone, now=self._now, useful_for=useful_for)
        except TimeRefused as refused:
            faults.append(_time_fault(refused))
            if refused.code == "zone-unknown":
                faults.extend(self._unreadable_anywhere(written))
        return None

    def _unreadable_anywhere(self, written: str) -> Iterator[Fault]:
        """What is wrong with a time whatever its zone."""
        try:
            times.read(written, "UTC", now=self._now, useful_for=self._useful_for)
        except TimeRefused as refused:
            if refused.code in {"time-missing", "time-unreadable"}:
                yield _time_fault(refused)

    def _attached(self, row: Row, faults: list[Fault]) -> Attached:
        attached = self._attachments.read(row.media, row.alt)
        faults.extend(attached.faults)
        return attached

    def _content(
        self, post: Post, channel: Channel | None, faults: list[Fault], notes: list[Fault]
    ) -> None:
        """What the content is not, what its platform would refuse, and what is worth knowing."""
        found = checks.anywhere(Variant(post))
        if channel is not None:
            try:
                adapter = self._registry.adapter(channel.platform)
            except NotFound as error:
                what, _, fix = str(error).partition(". ")
                faults.append(Fault("channel", f"{what}.", fix, "platform-unknown"))
            else:
                wants = checks.Wants(alt_text=channel.id in self._described)
                place = checks.of_channel(adapter, post, channel.name)
                found = checks.problems(Variant(post), place, wants=wants)
        for problem in found:
            told = faults if problem.severity is Severity.FIX else notes
            told.append(as_fault(problem))


def as_fault(problem: Problem) -> Fault:
    """The problem at its column: alt texts have one of their own, other media share theirs."""
    column, _, rest = problem.field.partition(".")
    column = "alt" if rest.endswith("alt") else column
    return Fault(column if column in COLUMNS else "text", problem.what, problem.fix, problem.code)


def _ref_faults(ref: str) -> Iterator[Fault]:
    if not ref:
        fix = "Give each post a name of its own, so that importing it again adds nothing."
        yield Fault("ref", "Is empty.", fix, "ref-missing")
    elif len(ref) > _REF_LIMIT:
        what = f"Has {len(ref):,} characters; a ref has at most {_REF_LIMIT}."
        yield Fault("ref", what, "Shorten it.", "ref-unusable")
    elif not is_one_line(ref):
        what = "Holds a line break or another control character."
        yield Fault("ref", what, "Take it out.", "ref-unusable")


def _time_fault(refused: TimeRefused) -> Fault:
    return Fault(refused.field, refused.what, refused.fix, refused.code)


def _place(fault: Fault) -> int:
    """In the order of the columns; what is in none comes first."""
    return COLUMNS.index(fault.column) if fault.column in COLUMNS else -1
