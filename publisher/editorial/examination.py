"""A document against the channels it is meant for: what to fix there, and what to know.

Known, too, is what is like it on the same channel: a note, which stands in no post's way.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, Row, select

from publisher.editorial import channel_access, channel_rules, checks, posting_times
from publisher.editorial.checks import Problem
from publisher.editorial.documents import Document
from publisher.editorial.schema import media, post_channels
from publisher.engine import queries
from publisher.engine.errors import NotFound, PublisherError
from publisher.engine.registry import Registry
from publisher.engine.schema import channels


class PostRefused(PublisherError):
    """A post that its platform would refuse; ``problems`` has all of it, ``code`` the first."""

    exit_code = 2

    def __init__(self, problems: Collection[ChannelProblem], what: str) -> None:
        first = next(iter(problems))
        more = len(problems) - 1
        tail = "" if not more else f" And {more} more to fix."
        super().__init__(f"{first.channel}: {first.problem.message} {what}{tail}")
        self.code = first.problem.code
        self.field = first.field
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class ChannelProblem:
    """One problem on one channel; ``channel_id`` None: wherever it goes."""

    channel_id: int | None
    channel: str
    problem: Problem
    in_variant: bool = False

    @property
    def stands_in_the_way(self) -> bool:
        """Whether it must be fixed before approval."""
        return checks.stands_in_the_way([self.problem])

    @property
    def field(self) -> str:
        """Where it is in the document: of the variant, or of what is for all."""
        where = f"variants.{self.channel_id}." if self.in_variant else ""
        return f"{where}{self.problem.field}"


def examine(
    conn: Connection,
    registry: Registry,
    document: Document,
    channel_ids: Collection[int],
    *,
    post_id: int | None = None,
    due: Mapping[int, datetime] | None = None,
) -> tuple[ChannelProblem, ...]:
    """Everything to fix, then everything to know, channel by channel.

    ``due``: when it goes out on which channel, where that is not what the post has stored.
    ``post_id``: whose own jobs are not told of as like it. A channel whose platform this release
    does not know has one problem, which says so.
    """
    found = [
        ChannelProblem(None, "Everywhere", problem) for problem in _missing_media(conn, document)
    ]
    rows = conn.execute(
        select(channels.c.id, channels.c.name, channels.c.platform)
        .where(channels.c.id.in_(channel_ids))
        .order_by(channels.c.id)
    ).all()
    facts = _Facts.of(conn, document, [row.id for row in rows])
    if not rows:
        everywhere = checks.anywhere(checks.Variant(document.post, document.first_comment))
        found += [ChannelProblem(None, "Everywhere", problem) for problem in everywhere]
    planned = {**_planned(conn, post_id), **(due or {})}
    for row in rows:
        at = planned.get(row.id)
        of = posting_times.zone_of(conn, row.id)
        on_it = _on_channel(registry, row, document, at, facts, of)
        on_it += _alike(conn, row.id, document, at, post_id, of)
        in_variant = row.id in document.variants
        found += [ChannelProblem(row.id, row.name, problem, in_variant) for problem in on_it]
    return tuple(sorted(found, key=lambda one: not one.stands_in_the_way))


@dataclass(frozen=True, slots=True)
class ChannelLength:
    """How much of what a channel takes the text uses there."""

    channel_id: int
    channel: str
    extent: checks.Extent


def lengths(
    conn: Connection, registry: Registry, document: Document, channel_ids: Collection[int]
) -> tuple[ChannelLength, ...]:
    """How long it is on each channel, as that counts; not where posts are not taken, or unknown."""
    rows = conn.execute(
        select(channels.c.id, channels.c.name, channels.c.platform)
        .where(channels.c.id.in_(channel_ids))
        .order_by(channels.c.id)
    )
    found = []
    for row in rows:
        post = document.post_for(row.id)
        try:
            place = checks.of_channel(registry.adapter(row.platform), post, row.name)
        except NotFound:
            continue
        if place.can.takes_posts:
            found.append(ChannelLength(row.id, row.name, checks.extent(post, place.can)))
    return tuple(found)


def require_good(problems: Collection[ChannelProblem], what: str) -> None:
    """Raise ``PostRefused`` where something must be fixed; ``what`` says what was not done."""
    bad = [problem for problem in problems if problem.stands_in_the_way]
    if bad:
        raise PostRefused(bad, what)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the database knows of the channels and the files.

    ``described``: channels that want an alt text for every picture and video.
    """

    broken: frozenset[int]
    ends: Mapping[int, datetime]
    described: frozenset[int]
    measured: Mapping[str, checks.Measures]

    @classmethod
    def of(cls, conn: Connection, document: Document, channel_ids: Collection[int]) -> _Facts:
        posts = [document.post, *map(document.post_for, document.variants)]
        broken = checks.needing_reconnection(conn, channel_ids)
        ends = channel_access.ends(conn, channel_ids)
        described = channel_rules.wanting_alt_texts(conn, channel_ids)
        return cls(broken, ends, described, checks.measured(conn, posts))


def _planned(conn: Connection, post_id: int | None) -> dict[int, datetime]:
    """When the post goes out where, as it was last said."""
    rows = conn.execute(
        select(post_channels.c.channel_id, post_channels.c.publish_at).where(
            post_channels.c.post_id == post_id
        )
    )
    return {row.channel_id: row.publish_at for row in rows}


def _alike(
    conn: Connection,
    channel_id: int,
    document: Document,
    at: datetime | None,
    post_id: int | None,
    of: ZoneInfo,
) -> tuple[Problem, ...]:
    """What is like it there around its time; around now where it has none."""
    at = at or queries.clock(conn)
    near = checks.near(conn, channel_id, at, but=post_id)
    found = checks.resembling(document.post_for(channel_id), near, at, of=of)
    return tuple(one.problem for one in found)


def _on_channel(
    registry: Registry,
    row: Row[int, str, str],
    document: Document,
    due_at: datetime | None,
    facts: _Facts,
    of: ZoneInfo,
) -> tuple[Problem, ...]:
    channel_id, name, platform = row
    try:
        adapter = registry.adapter(platform)
    except NotFound as error:
        return (Problem("channel", "platform-unknown", str(error)),)
    post = document.post_for(channel_id)
    comment = document.first_comment_for(channel_id)
    variant = checks.Variant(post, comment, facts.measured)
    place = checks.of_channel(
        adapter,
        post,
        name,
        due_at=due_at,
        expires_at=facts.ends.get(channel_id),
        needs_reconnecting=channel_id in facts.broken,
    )
    wants = checks.Wants(alt_text=channel_id in facts.described)
    found = checks.problems(variant, place, of=of, wants=wants)
    if variant.first_comment is not None and not any(
        problem.field == "first_comment" for problem in found
    ):
        what = "First comments are not sent by this release."
        fix = "Take it out, or put it into the text."
        found += (Problem("first_comment", "first-comment-not-sent", what, fix),)
    # What the platform knows of itself beyond its capabilities.
    told = {(problem.field, problem.code) for problem in found}
    return found + tuple(
        problem
        for problem in adapter.problems(post.to_json())
        if (problem.field, problem.code) not in told
    )


def _missing_media(conn: Connection, document: Document) -> list[Problem]:
    """Files that are named and not kept."""
    named = {
        item.sha256: f"media.{number}"
        for post in [document.post, *map(document.post_for, document.variants)]
        for number, item in enumerate(post.media, start=1)
        if item.sha256 is not None
    }
    kept = set()
    if named:
        hashes = [bytes.fromhex(sha256) for sha256 in named if _is_sha256(sha256)]
        kept = {
            bytes(sha256).hex()
            for sha256 in conn.scalars(select(media.c.sha256).where(media.c.sha256.in_(hashes)))
        }
    what = "This file is not kept here."
    fix = "Add it to the post again."
    return [
        Problem(field, "media-missing", what, fix)
        for sha256, field in named.items()
        if sha256 not in kept
    ]


def _is_sha256(written: str) -> bool:
    try:
        return len(bytes.fromhex(written)) == 32  # noqa: PLR2004 - bytes of SHA-256
    except ValueError:
        return False
