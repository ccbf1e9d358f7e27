"""One doubt on the screen: the evidence, what could be the post, and what may be decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from string import ascii_uppercase
from typing import Any, Final

from publisher.cli import job_page, moments, screen
from publisher.cli.job_page import field
from publisher.cli.screen import Column, excerpt, visible
from publisher.editorial.unknowns import Decision, Seen
from publisher.engine.content import ContentError, Post
from publisher.engine.evidence import Candidate
from publisher.engine.job import DELETE, State, public_id
from publisher.engine.matching import normalised
from publisher.engine.recognition import difference
from publisher.words import _, many

_BESIDE: Final = 3
"""Candidates that fit beside what we sent; more stand below one another."""
_TEXT: Final = 40
_INDENT: Final = "  "
_CHOICE: Final = 16


def lines(seen: Seen, *, digits: int, tries: int, horizon: timedelta) -> Iterator[str]:
    """The page, line by line."""
    detail, doubt = seen.detail, seen.doubt
    of = moments.zone(detail.zone)
    name = public_id(doubt.job_id)[:digits]
    yield from job_page.evidence(detail, seen.can, doubt, tries=tries, horizon=horizon)
    if seen.candidates:
        yield many(
            "{n} post could be it; what we sent is on the left:",
            "{n} posts could be it; what we sent is on the left:",
            len(seen.candidates),
        )
        yield from (f"{_INDENT}{line}" for line in _beside(seen, of))
    yield _("Decide")
    yield from _choices(seen, name)
    yield field(_("Next"), "   |   ".join(_next(seen, name)))


def as_json(seen: Seen) -> dict[str, Any]:
    """Everything the page is made from: the job's own, and what is known of the doubt."""
    doubt = seen.doubt
    row = seen.detail.row
    return {
        **job_page.as_json(seen.detail),
        "since": moments.iso(doubt.since),
        "looks_made": doubt.looks,
        "next_look_at": moments.iso(row.next_look_at),
        "asked_at": moments.iso(row.asked_at),
        "asked_reason": row.asked_reason,
        "taken_by": doubt.taken_by,
        "attempt": doubt.attempt,
        "latest_attempt": doubt.latest,
        "can_look": seen.can_look,
        "locked": seen.locked,
        "candidates": [
            {
                "remote_id": one.remote_id,
                "permalink": one.permalink,
                "created_at": moments.iso(one.created_at),
                "text": one.text,
                "ours": one.ours,
            }
            for one in seen.candidates
        ],
    }


def _beside(seen: Seen, of: tzinfo) -> list[str]:
    """What we sent and each candidate: in columns where that fits, else in rows."""
    sent = _text_of(seen)
    heads = [_("WE SENT"), *_letters(len(seen.candidates))]
    parties = [
        [_clock(seen.doubt.live_since, of), excerpt(sent, _TEXT), _("ours"), "", ""],
        *(_cells(one, sent, of) for one in seen.candidates),
    ]
    labels = [_("time"), _("text"), _("app"), _("id"), _("link")]
    if len(seen.candidates) <= _BESIDE:
        columns = [Column("", whole=True), *(Column(head) for head in heads)]
        rows: Sequence[Sequence[str]] = [
            [label, *(party[at] for party in parties)] for at, label in enumerate(labels)
        ]
        return screen.table_lines(columns, rows)
    columns = [Column("", whole=True), *(Column(label.upper()) for label in labels)]
    rows = [[head, *party] for head, party in zip(heads, parties, strict=True)]
    return screen.table_lines(columns, rows)


def _cells(one: Candidate, sent: str, of: tzinfo) -> list[str]:
    app = {True: _("ours"), False: _("another's"), None: _("not shown")}[one.ours]
    if normalised(one.text) == normalised(sent):
        text = _("same text")
    elif not one.text:
        text = _("no text")
    else:
        text = _("differs: {text}").format(text=difference(sent, one.text)[1])
    return [_clock(one.created_at, of), text, app, one.remote_id, one.permalink or ""]


def _choices(seen: Seen, name: str) -> Iterator[str]:
    """What may be decided; what is locked stays in sight, with the reason."""
    resolve = f"publisher unknowns resolve {name}"
    if seen.detail.row.kind == DELETE:
        yield from _removal_choices(seen, name, resolve)
        return
    yield _choice(_("It is live"), f"{resolve} --live {_('LINK_OR_ID')} --reason …")
    yield _choice("", f"{resolve} --attest --reason …   {_('seen there, but there is no link')}")
    looks = _("this platform cannot be looked at")
    if seen.can_look:
        looks = f"publisher unknowns look {name}   {_looks(seen)}".rstrip()
    yield _choice(_("Look again"), looks)
    if seen.locked is not None:
        yield _choice(_("It is not live"), _("locked. {why}").format(why=visible(seen.locked)))
    else:
        channel = f'"{seen.channel.name}"'
        now = f"{resolve} --absent --send now|TIME --confirm {channel} --reason …"
        yield _choice(_("It is not live"), visible(now))
        if seen.candidates:
            against = _("against what the last look shows; the journal will say that it was forced")
            yield _choice("", against)
        yield _choice("", f"{resolve} --absent --send no --reason …   {_('give it up')}")
    dropped = _("it may be on the page, and is not followed any more")
    yield _choice(_("Drop"), f"{resolve} --drop --reason …   {dropped}")


def _removal_choices(seen: Seen, name: str, resolve: str) -> Iterator[str]:
    """The same decisions about a deletion: it has gone through when the post is gone."""
    yield _choice(_("It is gone"), f"{resolve} --attest --reason …")
    looks = _("this platform cannot be looked at")
    if seen.can_look:
        looks = f"publisher unknowns look {name}   {_looks(seen)}".rstrip()
    yield _choice(_("Look again"), looks)
    if seen.locked is not None:
        yield _choice(_("It is there"), _("locked. {why}").format(why=visible(seen.locked)))
    else:
        again = f'{resolve} --absent --send now --confirm "{seen.channel.name}" --reason …'
        yield _choice(_("It is there"), f"{visible(again)}   {_('ask for its deletion again')}")
        yield _choice("", f"{resolve} --absent --send no --reason …   {_('leave it there')}")
    dropped = _("it may be on the page, and is not followed any more")
    yield _choice(_("Drop"), f"{resolve} --drop --reason …   {dropped}")


def removal_told(decision: Decision, name: str, who: str) -> str:
    """What was recorded about a deletion."""
    match decision.state:
        case State.PUBLISHED:
            return _("{id} is through: {who} saw that the post is gone.").format(id=name, who=who)
        case State.SCHEDULED:
            return _("{id} asks for the deletion again.").format(id=name)
        case State.FAILED:
            return _("{id} has deleted nothing: the post is there, and stays.").format(id=name)
        case _:
            return _("{id} is dropped: the post may be there, and nobody looks any more.").format(
                id=name
            )


def _looks(seen: Seen) -> str:
    row = seen.detail.row
    if row.next_look_at is None:
        return _("looks by itself have ended")
    if row.next_look_at <= row.now:
        return _("a look is due")
    return _("next by itself {when}").format(when=moments.relative(row.next_look_at, row.now))


def _next(seen: Seen, name: str) -> Iterator[str]:
    attempt = f"--attempt {seen.doubt.latest}"
    if len(seen.candidates) == 1:
        live = visible(seen.candidates[0].remote_id)
        yield f"publisher unknowns resolve {name} {attempt} --live {live} --reason …"
    elif seen.detail.row.kind == DELETE:
        yield f"publisher unknowns resolve {name} {attempt} --attest --reason …"
    elif seen.candidates or not seen.can_look:
        yield f"publisher unknowns resolve {name} {attempt} --live {_('LINK_OR_ID')} --reason …"
    if seen.can_look:
        yield f"publisher unknowns look {name} --wait"
    if seen.doubt.taken_by is None:
        yield f"publisher unknowns take {name}"


def _choice(label: str, text: str) -> str:
    return f"{_INDENT}{label:<{_CHOICE}}{text}".rstrip()


def _text_of(seen: Seen) -> str:
    try:
        return Post.from_json(seen.doubt.content).text
    except ContentError:
        return ""


def _letters(number: int) -> list[str]:
    return [ascii_uppercase[at % len(ascii_uppercase)] for at in range(number)]


def _clock(at: datetime | None, of: tzinfo) -> str:
    return "" if at is None else moments.clock(at, of)
