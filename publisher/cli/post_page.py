"""One post, told to a person: where it stands, what it says, where it goes, who did what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from publisher.cli import moments, screen
from publisher.editorial.documents import Document, Part
from publisher.editorial.drafts import EditConflict
from publisher.editorial.edits import Act, Change
from publisher.editorial.examination import ChannelLength, ChannelProblem
from publisher.editorial.post_pages import PostPage, Status
from publisher.editorial.schedules import Next
from publisher.editorial.version_rows import StoredVersion
from publisher.engine.job import State, public_id
from publisher.engine.queries import PostJob, RemovalRow
from publisher.words import _

_EXCERPT = 70


def lines(
    page: PostPage,
    now: datetime,
    digits: int,
    found: Iterable[ChannelProblem] = (),
    counted: Iterable[ChannelLength] = (),
) -> Iterator[str]:
    """The page, line by line; ``found`` and ``counted``: of its draft, where it goes."""
    newest = page.newest
    number = 0 if newest is None else newest.number
    yield f"{_status(page)} · " + _("post {name}").format(name=page.name)
    yield _row(_("Text"), f'"{screen.excerpt(page.draft.document.post.text, _EXCERPT)}"')
    if newest is not None:
        yield _row(
            _("Version"),
            f"{number}  sha256 {newest.sha256.hex()[:12]}  "
            + _("by {who}, {when}").format(
                who=newest.created_by, when=moments.short(newest.created_at, now)
            ),
        )
    if page.has_unsaved_changes:
        yield _row(_("Draft"), _("has changes that are in no version yet"))
    for channel_id, variant in page.draft.document.variants.items():
        own = ", ".join(sorted(variant.own))
        where = page.channels.get(channel_id, str(channel_id))
        yield _row(_("Own form"), f"{where}: {own}")
    yield _row(_("Goes to"), ", ".join(page.channels.values()) or "-")
    for one in counted:
        said = _("{used} of {limit} characters on {channel}").format(
            used=f"{one.extent.used:,}", limit=f"{one.extent.limit:,}", channel=one.channel
        )
        yield _row(_("Length"), said)
    if page.labels:
        yield _row(_("Labels"), ", ".join(page.labels))
    if page.assignees:
        yield _row(_("Assigned"), ", ".join(page.assignees))
    for channel_id, (after, job) in page.options.items():
        held = "" if job.hold_reason is None else _(", on hold: {why}").format(why=job.hold_reason)
        yield _row(
            page.channels.get(channel_id, str(channel_id)),
            f"{job.state}{held} · " + _("version {n}").format(n=job.version or "-")
            + f" · {moments.short(job.due_at, now)} · "
            + _("job {id}").format(id=public_id(job.id)[:digits]) + f" · {_on_channel(after, job)}",
        )  # fmt: skip
    for removal in page.removals:
        yield _row(
            _("Deletion"),
            f"{removal.channel} · {_removal(removal)} · {moments.short(removal.due_at, now)} · "
            + _("job {id}").format(id=public_id(removal.id)[:digits]) + " "
            + _("of the post of job {id}").format(id=public_id(removal.removes)[:digits]),
        )  # fmt: skip
    yield from problems(found)
    yield from (_event(event.at, event.who, event.event, event.version, event.detail, now)
                for event in page.events)  # fmt: skip


def next_of(page: PostPage) -> list[str]:
    """The commands that follow."""
    name = page.name
    fixes = [at for at, (after, _job) in page.options.items() if after is Next.FIX]
    match page.status:
        case Status.TRASHED:
            return [f"publisher posts restore {name}"]
        case Status.APPROVED if fixes:
            where = page.channels[fixes[0]]
            return [f'publisher posts fix {name} --channel "{where}" --text … --at TIME']
        case Status.APPROVED if page.options:
            return [f"publisher posts edit {name}", "publisher jobs list"]
        case Status.APPROVED:
            return [f"publisher posts schedule {name} --at TIME"]
        case Status.IN_REVIEW:
            return [
                f"publisher posts approve {name}",
                f"publisher posts request-changes {name} --comment …",
            ]
        case _:
            return [f"publisher posts submit {name}", f"publisher posts approve {name}"]


def as_json(page: PostPage, found: Iterable[ChannelProblem] = ()) -> dict[str, object]:
    """The fields that scripts rely on."""
    return {
        "post": page.id,
        "ref": page.ref,
        "status": str(page.status).replace(" ", "_"),
        "revision": page.draft.revision,
        "has_unsaved_changes": page.has_unsaved_changes,
        "text": page.draft.document.post.text,
        "link": page.draft.document.post.link,
        "variants": {
            str(at): variant.as_json() for at, variant in page.draft.document.variants.items()
        },
        "channels": list(page.channels.values()),
        "labels": list(page.labels),
        "assignees": list(page.assignees),
        "trashed_at": moments.iso(page.trashed_at),
        "versions": [_version_as_json(version) for version in page.versions],
        "jobs": [
            {
                "id": public_id(job.id),
                "channel": job.channel,
                "state": str(job.state),
                "hold": job.hold_reason,
                "version": job.version,
                "due_at": moments.iso(job.due_at),
                "replaces": None if job.replaces is None else public_id(job.replaces),
                "repeats": None if job.repeats is None else public_id(job.repeats),
                "deleted_at": moments.iso(job.deleted_at),
            }
            for job in page.jobs
        ],
        "deletions": [
            {
                "id": public_id(one.id),
                "removes": public_id(one.removes),
                "channel": one.channel,
                "state": str(one.state),
                "due_at": moments.iso(one.due_at),
                "settled_at": moments.iso(one.settled_at),
                "reason": one.reason,
            }
            for one in page.removals
        ],
        "problems": [
            {
                "channel": one.channel,
                "field": one.field,
                "code": one.problem.code,
                "message": one.problem.message,
                "must_be_fixed": one.stands_in_the_way,
            }
            for one in found
        ],
        "next": {page.channels[at]: str(after) for at, (after, _job) in page.options.items()},
        "journal": [
            {
                "at": moments.iso(event.at),
                "who": event.who,
                "event": event.event,
                "version": event.version,
                "detail": dict(event.detail),
            }
            for event in page.events
        ],
    }


def changes(done: Iterable[Change], digits: int) -> Iterator[str]:
    """What an act did to the jobs there are, where it did something."""
    for change in done:
        if change.act is not Act.LEFT:
            name = public_id(change.job.id)[:digits]
            yield f"{change.job.channel}: " + _acted(change.act).format(id=name)


def both(conflict: EditConflict, page: PostPage) -> Iterator[str]:
    """The text that is stored and the one that was not saved, whole, and how to save again."""
    theirs = conflict.theirs
    who = screen.visible(theirs.saved_by or _("somebody"))
    yield _("Stored by {who}, revision {n}:").format(who=who, n=theirs.revision)
    yield from _whole(theirs.document, page)
    yield _("Yours, not saved:")
    yield from _whole(conflict.yours, page)
    command = f"publisher posts edit {page.name} --if-revision {theirs.revision} --text …"
    yield _("Next: {commands}").format(commands=command)


def _whole(document: Document, page: PostPage) -> Iterator[str]:
    """All that a document says, a part below the other."""
    forms = {page.channels.get(at, str(at)): one for at, one in document.variants.items()}
    parts = [("", document.post.text), (_("Link"), document.post.link or "")]
    for name, own in forms.items():
        parts += [
            (_("On {channel}").format(channel=name), own.text if Part.TEXT in own.own else ""),
            (_("Link on {channel}").format(channel=name), own.link or ""),
        ]
    for label, said in parts:
        if said or not label:
            lead = f"{screen.visible(label)}: " if label else ""
            yield from (
                f"  {screen.visible(line)}" for line in f"{lead}{said}".splitlines() or [""]
            )


def problems(found: Iterable[ChannelProblem]) -> Iterator[str]:
    """What is to be fixed, and what is worth knowing."""
    for one in found:
        mark = _("To fix") if one.stands_in_the_way else _("Note")
        said = screen.visible(one.problem.message)
        yield f"{mark} · {one.channel}: {said} ({one.problem.code})"


def _status(page: PostPage) -> str:
    match page.status:
        case Status.TRASHED:
            return _("In the trash")
        case Status.APPROVED:
            return _("Approved")
        case Status.IN_REVIEW:
            return _("Waiting for approval")
        case Status.DRAFT:
            return _("Draft")


def _acted(act: Act) -> str:
    match act:
        case Act.HELD:
            return _("job {id} is on hold until the new version is approved")
        case Act.REPLACED:
            return _("job {id} has the new version")
        case Act.SUCCEEDED:
            return _("job {id} was begun and is not on the page; another has taken its place")
        case Act.RELEASED:
            return _("job {id} goes on")
        case Act.LEFT:
            return _("job {id} is left as it is")


def _removal(removal: RemovalRow) -> str:
    match removal.state:
        case State.PUBLISHED:
            return _("gone from the page")
        case State.UNKNOWN | State.DROPPED:
            return _("may still be on the page")
        case State.FAILED | State.CANCELLED | State.MISSED:
            return _("not deleted: {state}").format(state=removal.state)
        case _:
            return _("asked for: {state}").format(state=removal.state)


def _on_channel(after: Next, job: PostJob) -> str:
    if after is Next.AGAIN and job.deleted_at is not None:
        at = job.deleted_at
        return _("deleted by {at}; again only on purpose").format(at=f"{at:%Y-%m-%d %H:%M %Z}")
    return _said(after)


def _said(after: Next) -> str:
    match after:
        case Next.SCHEDULE:
            return _("may be scheduled again")
        case Next.FIX:
            return _("fix the post and schedule it again")
        case Next.AGAIN:
            return _("live; again only on purpose")
        case Next.CHANGE:
            return _("may still be changed")
        case Next.WAIT:
            return _("wait for its end")
        case Next.DECIDE:
            return _("may be live; a person decides")


def _row(name: str, value: str) -> str:
    return f"{name:<10}{screen.visible(value)}"


def _event(
    at: datetime, who: str, event: str, version: int | None, detail: object, now: datetime
) -> str:
    what = event.replace("_", " ")
    number = "" if version is None else " " + _("version {n}").format(n=version)
    comment = detail.get("comment") if isinstance(detail, dict) else None
    said = "" if comment is None else f': "{screen.excerpt(str(comment), _EXCERPT)}"'
    return f"  {moments.short(at, now)}  {screen.visible(who)}  {what}{number}{said}"


def _version_as_json(version: StoredVersion) -> dict[str, object]:
    return {
        "number": version.number,
        "sha256": version.sha256.hex(),
        "created_at": moments.iso(version.created_at),
        "created_by": version.created_by,
        "approved_at": moments.iso(version.approved_at) if version.is_approved else None,
        "approved_by": version.approved_by if version.is_approved else None,
        "withdrawn_at": moments.iso(version.withdrawn_at),
    }
