"""What a demonstration plays on: a database, the sandbox as a platform, two of its Pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from publisher import bootstrap
from publisher.bootstrap import App
from publisher.cli import session
from publisher.cli.children import Children
from publisher.db import migrate
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.editorial import channels
from publisher.engine.errors import Conflict, NotFound
from publisher.engine.job import Channel
from publisher.sandbox.control import SandboxControl
from publisher.words import _

if TYPE_CHECKING:
    from publisher.config import Settings

_PLATFORM: Final = "facebook_pages"
_PAGES: Final = 2


@dataclass(frozen=True, slots=True)
class Stage:
    """``url`` is the sandbox's address; ``pages`` its Pages as channels of ours."""

    app: App
    children: Children
    url: str
    control: SandboxControl
    pages: tuple[Channel, ...]


@contextmanager
def stage(settings: Settings, *, share: bool = False) -> Iterator[Stage]:
    """Set everything up; when the block ends, stop the processes first and the database last.

    ``share``: a sandbox that runs on the port already, say in ``make run``, is used as it is.
    Raises ``ChildFailed`` when the port is taken; the sandbox has named its setting then.
    """
    with (
        Database.open(settings, Role.OWNER, application_name="publisher demo owner") as owner,
        Children(settings, quiet=True) as children,
        children.serving(),
    ):
        migrate.upgrade(owner)
        with session.database() as database, bootstrap.open_app(settings, database) as app:
            url = _running(settings) if share else None
            if url is None:
                url = children.start_sandbox(pages=_PAGES)
            control = SandboxControl(url)
            pages = tuple(
                _connected(app, page["id"], page["name"], page["token"], url)
                for page in control.add_pages(_PAGES)
            )
            yield Stage(app, children, url, control, pages)
            # The processes use what this block opened.
            children.stop()


def _running(settings: Settings) -> str | None:
    """The address of a sandbox that runs already where ours would."""
    if settings.sandbox_port == 0:
        return None
    url = f"http://127.0.0.1:{settings.sandbox_port}"
    try:
        SandboxControl(url).pages()
    except (OSError, ValueError):
        return None
    except Exception:  # noqa: BLE001 - something else listens there; starting ours will say so
        return None
    return url


def _connected(app: App, remote_id: str, name: str, token: str, url: str) -> Channel:
    """The channel for one of the sandbox's Pages, added where it is missing."""
    with app.database.engine.begin() as conn:
        try:
            found = channels.find(conn, name)
        except NotFound:
            return channels.add(
                conn,
                app.vault,
                app.registry,
                platform=_PLATFORM,
                name=name,
                remote_id=remote_id,
                base_url=url,
                trusted=True,
                token=token,
            )
    if found.base_url != url:
        message = _(
            "{name} was connected at {old}; the sandbox is at {new} now. Set"
            " PUBLISHER_SANDBOX_PORT to the old port, or PUBLISHER_HOME to another folder."
        ).format(name=name, old=found.base_url, new=url)
        raise Conflict(message, code="sandbox-moved")
    return found
