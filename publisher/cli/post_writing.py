"""``publisher posts new|edit|show|trash|restore``: what one post says."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from publisher import bootstrap
from publisher.cli import post_page, screen, session
from publisher.cli.exits import Exit
from publisher.editorial import channels, drafts, labels, post_pages, trash, versions
from publisher.editorial.documents import Document, Part, Variant
from publisher.editorial.drafts import EditConflict
from publisher.editorial.edits import Change
from publisher.editorial.examination import ChannelProblem, examine, lengths
from publisher.editorial.post_lock import find_post
from publisher.editorial.post_pages import PostPage
from publisher.editorial.versions import Saved
from publisher.engine import queries
from publisher.engine.content import Post
from publisher.engine.errors import Conflict, PublisherError
from publisher.words import _

if TYPE_CHECKING:
    from sqlalchemy import Connection

NAME_HELP = _("Ref or number.")
Name = Annotated[str, typer.Argument(metavar="POST", help=NAME_HELP, show_default=False)]
Json = Annotated[bool, typer.Option("--json", help=_("As JSON."))]
TextOption = Annotated[
    str | None, typer.Option(help=_("What it says; - reads standard input."), show_default=False)
]
TextFile = Annotated[
    Path | None, typer.Option(help=_("Read the text from this file."), show_default=False)
]
LinkOption = Annotated[
    str | None, typer.Option(help=_("Its link; empty takes it off."), show_default=False)
]
ChannelOption = Annotated[
    list[str] | None, typer.Option(help=_("Name or id; may be repeated."), show_default=False)
]


class TextMissing(PublisherError):
    """Nothing to write was given."""

    code = "text-missing"
    field = "text"


def new(
    *,
    text: TextOption = None,
    text_file: TextFile = None,
    link: LinkOption = None,
    channel: ChannelOption = None,
    ref: Annotated[
        str | None, typer.Option(help=_("Your own name for it."), show_default=False)
    ] = None,
    label: Annotated[list[str] | None, typer.Option(help=_("May be repeated."))] = None,
    json: Json = False,
) -> None:
    """Exit 0 also where something is to be fixed before it is approved; that is told."""
    written = _read(text, text_file)
    if written is None:
        message = _("There is no text. Give --text or --text-file. Nothing was stored.")
        raise TextMissing(message)
    document = Document(Post(written, link or None))
    with session.transaction() as conn:
        ids = [channels.find(conn, name).id for name in channel or ()]
        draft = drafts.new(conn, document, who=session.who(), channel_ids=ids, ref=ref)
        saved = _save(conn, draft.post_id, document, draft.revision)
        if label:
            labels.label(conn, draft.post_id, who=session.who(), add=label)
        show_done(conn, draft.post_id, _("Saved as version 1."), json=json, found=saved.problems)


def edit(  # noqa: PLR0913 - each option is one thing to change
    post: Name,
    *,
    text: TextOption = None,
    text_file: TextFile = None,
    link: LinkOption = None,
    channel: ChannelOption = None,
    only: Annotated[
        str,
        typer.Option(metavar="CHANNEL", help=_("Change its form on this channel alone.")),
    ] = "",
    same: Annotated[
        bool, typer.Option("--same", help=_("With --only: no form of its own any more."))
    ] = False,
    back_to: Annotated[
        int | None, typer.Option(metavar="VERSION", help=_("Make it equal to that version."))
    ] = None,
    if_revision: Annotated[
        int | None, typer.Option(help=_("Only if nobody saved since; see show --json."))
    ] = None,
    label: Annotated[list[str] | None, typer.Option(help=_("Add; may be repeated."))] = None,
    unlabel: Annotated[list[str] | None, typer.Option(help=_("Take off."))] = None,
    assign: Annotated[list[str] | None, typer.Option(help=_("Give it to them."))] = None,
    unassign: Annotated[list[str] | None, typer.Option(help=_("Take it from them."))] = None,
    json: Json = False,
) -> None:
    """Exit 4 where it is too late for a job; the text is kept as a version all the same."""
    who = session.who()
    written = _read(text, text_file)
    with session.transaction() as conn:
        post_id = find_post(conn, post)
        targets = None if channel is None else [channels.find(conn, at).id for at in channel]
        if label or unlabel:
            labels.label(conn, post_id, who=who, add=label or (), remove=unlabel or ())
        if assign or unassign:
            labels.assign(conn, post_id, who=who, add=assign or (), remove=unassign or ())
        with _both_shown(conn, post_id):
            if back_to is not None:
                saved = versions.go_back(
                    conn, post_id, back_to, revision=if_revision, who=who,
                    registry=bootstrap.describing_registry(session.settings()),
                )  # fmt: skip
            else:
                draft = drafts.read(conn, post_id)
                document = draft.document
                at = channels.find(conn, only).id if only else None
                changed = _changed(document, written, link, at, same=same)
                if changed == document and (label or unlabel or assign or unassign):
                    show_done(conn, post_id, _("Changed."), json=json)
                    return
                # What was read is what is changed: whoever saves in between is not written over.
                read = draft.revision if if_revision is None else if_revision
                saved = _save(conn, post_id, changed, read, targets)
        show_saved(conn, post_id, saved, json=json)
    exit_where_left(saved.refusals)


def show(post: Name, *, json: Json = False) -> None:
    """Exit 0 whatever is shown."""
    with session.transaction() as conn:
        _show(conn, find_post(conn, post), json=json)


def put_away(post: Annotated[list[str], typer.Argument(metavar="POST…", help=NAME_HELP)]) -> None:
    """Exit 4 where a job of one is open or may be live; then none is put away."""
    with session.transaction() as conn:
        for name in post:
            done = trash.trash(conn, find_post(conn, name), who=session.who())
            said = _("{name} is in the trash") if done else _("{name} was in the trash already")
            screen.say(said.format(name=name))
    screen.say_next(f"publisher posts restore {post[0]}")


def restore(post: Annotated[list[str], typer.Argument(metavar="POST…", help=NAME_HELP)]) -> None:
    """Exit 0, also where it was not in the trash."""
    with session.transaction() as conn:
        for name in post:
            done = trash.restore(conn, find_post(conn, name), who=session.who())
            said = _("{name} is back") if done else _("{name} was not in the trash")
            screen.say(said.format(name=name))
    screen.say_next(f"publisher posts show {post[0]}")


def show_saved(conn: Connection, post_id: int, saved: Saved, *, json: bool) -> None:
    """What a save came to."""
    said = _("Saved as version {n}.") if saved.is_new else _("Nothing changed: version {n} is it.")
    show_done(
        conn,
        post_id,
        said.format(n=saved.version.number),
        json=json,
        found=saved.problems,
        changes=saved.changes,
    )


def show_done(
    conn: Connection,
    post_id: int,
    said: str,
    *,
    json: bool,
    found: Sequence[ChannelProblem] = (),
    changes: Iterable[Change] = (),
) -> None:
    """What was done with a post, and what follows."""
    page = post_pages.read(conn, post_id)
    if json:
        screen.emit([post_page.as_json(page, found)])
        return
    screen.say(_("Post {name}: {said}").format(name=page.name, said=said))
    screen.say(*post_page.changes(changes, queries.id_digits(conn)))
    screen.say(*post_page.problems(found))
    screen.say_next(*post_page.next_of(page))


def examined(conn: Connection, page: PostPage) -> tuple[ChannelProblem, ...]:
    """What is to be fixed in the draft of a post, and what is worth knowing of it."""
    registry = bootstrap.describing_registry(session.settings())
    document = page.draft.document
    return examine(conn, registry, document, [*page.channels], post_id=page.id)


def exit_where_left(refusals: Sequence[Conflict]) -> None:
    """Say on standard error why some jobs were left as they are, and exit 4 then."""
    for refusal in refusals:
        screen.note(f"{refusal} ({refusal.code})")
    if refusals:
        raise typer.Exit(Exit.CONFLICT)


def changed_for(document: Document, channel_id: int, **parts: str | None) -> Document:
    """The document with these parts its own on one channel."""
    before = document.variants.get(channel_id)
    own = {} if before is None else {str(part): getattr(before, part) for part in before.own}
    variants = {**document.variants, channel_id: Variant.of(**{**own, **parts})}
    return Document(document.post, document.first_comment, variants)


@contextmanager
def _both_shown(conn: Connection, post_id: int) -> Iterator[None]:
    """Where somebody saved meanwhile, show their text and the one that was not saved."""
    try:
        yield
    except EditConflict as conflict:
        page = post_pages.read(conn, post_id)
        screen.note(*post_page.both(conflict, page))
        raise


def _show(conn: Connection, post_id: int, *, json: bool) -> None:
    page = post_pages.read(conn, post_id)
    found = examined(conn, page)
    if json:
        screen.emit([post_page.as_json(page, found)])
        return
    registry = bootstrap.describing_registry(session.settings())
    counted = lengths(conn, registry, page.draft.document, [*page.channels])
    now, digits = queries.clock(conn), queries.id_digits(conn)
    screen.say(*post_page.lines(page, now, digits, found, counted))
    screen.say_next(*post_page.next_of(page))


def _save(
    conn: Connection,
    post_id: int,
    document: Document,
    revision: int | None,
    targets: Sequence[int] | None = None,
) -> Saved:
    return versions.save(
        conn,
        post_id,
        document,
        revision=revision,
        who=session.who(),
        registry=bootstrap.describing_registry(session.settings()),
        channel_ids=targets,
    )


def _changed(
    document: Document, text: str | None, link: str | None, only: int | None, *, same: bool
) -> Document:
    """The document with what was given in place of what it had."""
    given: dict[str, str | None] = {}
    if text is not None:
        given[Part.TEXT] = text
    if link is not None:
        given[Part.LINK] = link or None
    if only is not None and same:
        others = {at: variant for at, variant in document.variants.items() if at != only}
        return Document(document.post, document.first_comment, others)
    if only is not None:
        return changed_for(document, only, **given) if given else document
    post = document.post
    post = Post(
        post.text if text is None else text,
        post.link if link is None else link or None,
        post.media,
    )
    return Document(post, document.first_comment, document.variants)


def _read(text: str | None, file: Path | None) -> str | None:
    if file is not None:
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            message = _("{file} cannot be read as text: {why}. Nothing was stored.")
            raise TextMissing(message.format(file=file, why=error)) from error
    if text == "-":
        return sys.stdin.read()
    return text
