"""Labels and assignees: what a post is about, and whose turn it is."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.postgresql import insert

from publisher.editorial import post_events
from publisher.editorial.actor import Actor, Who
from publisher.editorial.post_events import Event
from publisher.editorial.post_lock import lock
from publisher.editorial.schema import post_assignees, post_labels
from publisher.editorial.spelling import is_one_line
from publisher.engine.errors import PublisherError

LABEL_LONGEST = 50
LABELS_MOST = 50
NAME_LONGEST = 200


class LabelRefused(PublisherError):
    """A label or a name that cannot be kept."""

    code = "label-refused"
    field = "labels"


def label(
    conn: Connection,
    post_id: int,
    *,
    who: Who,
    add: Collection[str] = (),
    remove: Collection[str] = (),
) -> tuple[str, ...]:
    """Put labels on a post and take others off; its labels then, sorted.

    Raises ``LabelRefused``, ``Conflict`` (``busy``), ``NotFound``.
    """
    new = sorted({_clean(one, LABEL_LONGEST) for one in add})
    post = lock(conn, post_id)
    before = labels_of(conn, post.id)
    gone = sorted({one.strip() for one in remove if is_one_line(one)} - set(new))
    conn.execute(
        delete(post_labels).where(post_labels.c.post_id == post.id, post_labels.c.label.in_(gone))
    )
    if new:
        conn.execute(
            insert(post_labels)
            .values([{"post_id": post.id, "label": one} for one in new])
            .on_conflict_do_nothing()
        )
    after = labels_of(conn, post.id)
    if len(after) > LABELS_MOST:
        message = f"A post has at most {LABELS_MOST} labels. Nothing was changed."
        raise LabelRefused(message)
    if after != before:
        post_events.tell(conn, post.id, Event.LABELLED, who=who, labels=list(after))
    return after


def assign(
    conn: Connection,
    post_id: int,
    *,
    who: Who,
    add: Collection[Who] = (),
    remove: Collection[str] = (),
) -> tuple[str, ...]:
    """Give a post to people and take it from others; their names then, sorted. As ``label``."""
    new = {_clean(one.name, NAME_LONGEST): one.user_id for one in map(Actor.of, add)}
    post = lock(conn, post_id)
    before = assignees_of(conn, post.id)
    gone = sorted({one.strip() for one in remove if is_one_line(one)} - set(new))
    conn.execute(
        delete(post_assignees).where(
            post_assignees.c.post_id == post.id, post_assignees.c.name.in_(gone)
        )
    )
    if new:
        conn.execute(
            insert(post_assignees)
            .values(
                [
                    {"post_id": post.id, "name": name, "user_id": user_id}
                    for name, user_id in new.items()
                ]
            )
            .on_conflict_do_nothing()
        )
    after = assignees_of(conn, post.id)
    if len(after) > LABELS_MOST:
        message = f"A post has at most {LABELS_MOST} assignees. Nothing was changed."
        raise LabelRefused(message)
    if after != before:
        post_events.tell(conn, post.id, Event.ASSIGNED, who=who, assignees=list(after))
    return after


def labels_of(conn: Connection, post_id: int) -> tuple[str, ...]:
    """Its labels, sorted."""
    query = select(post_labels.c.label).where(post_labels.c.post_id == post_id)
    return tuple(sorted(conn.scalars(query)))


def assignees_of(conn: Connection, post_id: int) -> tuple[str, ...]:
    """The names of whose it is, sorted."""
    query = select(post_assignees.c.name).where(post_assignees.c.post_id == post_id)
    return tuple(sorted(conn.scalars(query)))


def _clean(written: str, longest: int) -> str:
    text = written.strip()
    if not text or len(text) > longest or not is_one_line(text):
        message = f"“{text[:60]}” is no label: one line of 1 to {longest} characters."
        raise LabelRefused(message)
    return text
