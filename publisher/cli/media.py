"""``publisher media``: add a picture or a video from a file or an address, and see what is kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

import typer

from publisher import bootstrap
from publisher.cli import moments, screen, session
from publisher.cli.screen import Column
from publisher.editorial import media, walls
from publisher.editorial.media import Kept, serving, signing
from publisher.engine.errors import PublisherError
from publisher.words import _

app = typer.Typer(no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help=_("One JSON object per line."))]
_WEB: Final = ("http://", "https://")


class FileUnreadable(PublisherError):
    """A file of the command line that cannot be opened."""

    code = "media-unreadable"


@app.command(help=_("Take in a picture or a video: a file, or what lies at a web address."))
def add(
    source: Annotated[
        str, typer.Argument(metavar="FILE|URL", help=_("Such as a.jpg."), show_default=False)
    ],
    *,
    json: Json = False,
) -> None:
    """Exit 0 when it is kept, 2 when it is refused; nothing is stored then."""
    with session.database() as database, bootstrap.open_app(session.settings(), database) as parts:
        if source.lower().startswith(_WEB):
            kept = media.add_from_url(parts.library, parts.fetcher, source, who=session.who())
        else:
            kept = _add_file(parts.library, Path(source))
    _tell(kept, json=json)


@app.command(help=_("Say what is kept under a hash."))
def show(
    sha256: Annotated[str, typer.Argument(metavar="SHA256", show_default=False)],
    *,
    json: Json = False,
) -> None:
    """Exit 0 when all its bytes are there, 2 when there is none, 3 when it is out of reach."""
    with session.database() as database, bootstrap.open_app(session.settings(), database) as parts:
        with database.engine.begin() as conn:
            kept = parts.library.find(conn, sha256)
        for _chunk in parts.library.read(kept.sha256):
            pass  # read to its end: damage shows there
    _tell(kept, json=json)


@app.command(name="list", help=_("List pictures and videos, the newest first."))
def list_media(
    *,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help=_("So many."))] = 50,
    json: Json = False,
) -> None:
    """Exit 0 whatever is listed."""
    with (
        session.database() as database,
        bootstrap.open_app(session.settings(), database) as parts,
        database.engine.begin() as conn,
    ):
        found = parts.library.newest(conn, limit=limit)
    if json:
        screen.emit(map(_as_json, found))
        return
    if not found:
        screen.say(_("There are no pictures or videos."))
        screen.say_next("publisher media add FILE")
        return
    screen.show_table(
        [
            Column(_("SHA-256"), whole=True),
            Column(_("TYPE")),
            Column(_("SIZE"), right=True),
            Column(_("PIXELS")),
            Column(_("ADDED BY")),
        ],
        ([one.sha256, one.type, _size(one), _pixels(one), one.created_by or ""] for one in found),
    )
    screen.say_next("publisher media list --json")


@app.command(help=_("Make an address at which anybody who has it fetches the file for a while."))
def address(
    sha256: Annotated[str, typer.Argument(metavar="SHA256", show_default=False)],
    *,
    minutes: Annotated[int, typer.Option(min=1, help=_("How long it works."))] = 60,
    json: Json = False,
) -> None:
    """Exit 2 where there is no such file, or for more than a week. ``publisher api`` serves it."""
    settings = session.settings()
    with (
        session.database() as database,
        bootstrap.open_app(settings, database) as parts,
        database.engine.begin() as conn,
    ):
        made = serving.address(
            conn,
            parts.vault.key_for(signing.PURPOSE),
            parts.library.find(conn, sha256),
            workspace_id=walls.own(conn),
            lasts=timedelta(minutes=minutes),
        )
    url = (settings.public_url or "").rstrip("/") + made.path
    if json:
        screen.emit([{"url": url, "expires_at": moments.iso(made.expires_at)}])
        return
    ends = moments.relative(made.expires_at, datetime.now(UTC))
    screen.say(
        _("Whoever has this fetches the file. It ends {when}:").format(when=ends), f"  {url}"
    )
    screen.say_next(f"publisher media show {sha256}")


def _add_file(library: media.Library, path: Path) -> Kept:
    try:
        with path.open("rb") as file:
            return media.add(library, media.chunks_of(file), who=session.who())
    except PublisherError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        message = _("{path} cannot be read: {reason}. Name another, or make it readable.")
        raise FileUnreadable(message.format(path=path, reason=reason)) from None


def _tell(kept: Kept, *, json: bool) -> None:
    if json:
        screen.emit([_as_json(kept)])
        return
    rows = [
        ("SHA-256", kept.sha256),
        (_("Type"), kept.type),
        (_("Size"), _size(kept)),
        (_("Pixels"), _pixels(kept) or _("not looked at")),
        (_("Kept in"), kept.place),
        (_("Added by"), kept.created_by or _("not known")),
    ]
    widest = max(len(name) for name, _value in rows)
    screen.say(*(f"{name:<{widest}}  {screen.visible(value)}" for name, value in rows))
    if kept.kind == "video":
        screen.say(
            _("A video is kept as it came, with what its camera wrote into it, such as the place.")
        )
    screen.say_next(f"publisher media show {kept.sha256}")


def _size(kept: Kept) -> str:
    return _("{n:,.2f} MB").format(n=kept.size / 1e6)


def _pixels(kept: Kept) -> str:
    if kept.width is None:
        return ""
    pixels = f"{kept.width:,} × {kept.height:,}"
    if kept.frames == 1:
        return pixels
    return _("{pixels}, {n} frames").format(pixels=pixels, n=kept.frames)


def _as_json(kept: Kept) -> dict[str, object]:
    return {
        "sha256": kept.sha256,
        "type": kept.type,
        "size": kept.size,
        "width": kept.width,
        "height": kept.height,
        "frames": kept.frames,
        "original_sha256": kept.original_sha256,
        "storage": kept.place,
        "created_at": moments.iso(kept.created_at),
        "created_by": kept.created_by,
    }
