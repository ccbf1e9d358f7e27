"""``publisher posts submit|approve|request-changes|withdraw|comment``."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from publisher import bootstrap
from publisher.cli import obstacle, post_page, screen, session
from publisher.cli.post_writing import (
    NAME_HELP,
    Json,
    Name,
    examined,
    exit_where_left,
    show_done,
)
from publisher.editorial import approval, post_pages, reviews
from publisher.editorial.post_lock import find_post
from publisher.engine import queries
from publisher.words import _, many

Version = Annotated[
    int | None,
    typer.Option(help=_("The version you have read; refused where there is a newer one.")),
]
Comment = Annotated[str, typer.Option(help=_("Kept in the post's journal."))]


def submit(
    post: Name,
    *,
    approver: Annotated[str, typer.Option(help=_("Who is asked; empty: whoever may."))] = "",
    version: Version = None,
    comment: Comment = "",
    json: Json = False,
) -> None:
    """Exit 0 also where it was asked for already."""
    with session.transaction() as conn:
        post_id = find_post(conn, post)
        is_new = reviews.submit(
            conn, post_id, who=session.who(), number=version, approver=approver, comment=comment
        )
        said = _("Waits for approval.") if is_new else _("Waits for approval already.")
        found = examined(conn, post_pages.read(conn, post_id))
        show_done(conn, post_id, said, json=json, found=found)


def approve(
    post: Annotated[list[str], typer.Argument(metavar="POST…", help=NAME_HELP, show_default=False)],
    *,
    version: Version = None,
    comment: Comment = "",
    json: Json = False,
) -> None:
    """Approves all or none. Exit 2 for one that is none or must be fixed, 4 where it is too late.

    What has a time and no job, as posts of a file have, is scheduled.
    """
    settings = session.settings()
    with session.transaction() as conn:
        approved, added = approval.approve(
            conn,
            post,
            who=session.who(),
            useful_for=timedelta(seconds=settings.useful_for_seconds),
            registry=bootstrap.describing_registry(settings),
            number=version,
            comment=comment,
        )
        pages = [post_pages.read(conn, one.version.post_id) for one in approved]
        found = [examined(conn, page) for page in pages]
        digits = queries.id_digits(conn)
        kept = [*obstacle.of_jobs(conn, [job.job_id for job in added]).values()]
    changes = [change for one in approved for change in one.changes]
    if json:
        screen.emit(map(post_page.as_json, pages, found))
    else:
        new = sum(one.is_new for one in approved)
        said = [
            *([many("Approved {n} post", "Approved {n} posts", new)] if new else []),
            *(
                [many("{n} was approved already", "{n} were approved already", earlier)]
                if (earlier := len(approved) - new)
                else []
            ),
            many("{n} job scheduled", "{n} jobs scheduled", sum(job.added for job in added)),
        ]
        screen.say(" · ".join(said))
        screen.say(*post_page.changes(changes, digits))
        for page, notes in zip(pages, found, strict=True):
            about = "" if len(pages) == 1 else f"{page.name} · "
            screen.say(*(f"{about}{said}" for said in post_page.problems(notes)))
        screen.say(*(screen.visible(one.said) for one in kept))
        following = ["publisher jobs list"] if added else post_page.next_of(pages[0])
        screen.say_next(*([kept[0].then] if kept else following))
    exit_where_left([refusal for one in approved for refusal in one.refusals])


def request_changes(
    post: Name,
    *,
    comment: Annotated[str, typer.Option(help=_("What should change."))],
    version: Version = None,
    json: Json = False,
) -> None:
    """Exit 4 where the version is approved already."""
    with session.transaction() as conn:
        post_id = find_post(conn, post)
        reviews.request_changes(conn, post_id, who=session.who(), comment=comment, number=version)
        show_done(conn, post_id, _("Its author is asked for changes."), json=json)


def withdraw(
    post: Name,
    *,
    reason: Annotated[str, typer.Option(help=_("Why; kept in the journal."))] = "",
    version: Annotated[
        int | None, typer.Option(help=_("Only of this version; without it: of all."))
    ] = None,
    json: Json = False,
) -> None:
    """Exit 4 where a send has begun; should it come back unsent, it is held."""
    with session.transaction() as conn:
        post_id = find_post(conn, post)
        done = reviews.withdraw(conn, post_id, who=session.who(), reason=reason, number=version)
        numbers = ", ".join(map(str, done.numbers))
        said = _("No longer approved: version {numbers}.").format(numbers=numbers)
        show_done(conn, post_id, said, json=json, changes=done.changes)
    exit_where_left(done.refusals)


def comment(
    post: Name,
    text: Annotated[str, typer.Argument(metavar="TEXT", help=_("What you have to say."))],
    *,
    version: Annotated[int | None, typer.Option(help=_("About this version."))] = None,
    json: Json = False,
) -> None:
    """Exit 0 once it is kept."""
    with session.transaction() as conn:
        post_id = find_post(conn, post)
        reviews.comment_on(conn, post_id, who=session.who(), comment=text, number=version)
        show_done(conn, post_id, _("Your comment is kept."), json=json)
