"""An honest person at the end: what the page's own log says is what they say of the page."""

from __future__ import annotations

import contextlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from publisher import bootstrap
from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.db.walls import EVERY
from publisher.editorial import quarantine, unknowns
from publisher.editorial.unknowns import Again, Signed
from publisher.engine.errors import PublisherError
from publisher.engine.queries import SuspectRow
from publisher.rehearsal.cast.settlers import AWAY
from publisher.sandbox import log as sandbox_log
from publisher.sandbox.log import SandboxLog

_SIGNED = Signed("operator", "as the page's own log has it")


@dataclass(slots=True)
class Person:
    """Where they sit. ``page``: directory of the platform's own log.

    ``did``: what they did, and what was refused to them.
    """

    settings: Settings
    page: Path
    pages: dict[int, str]
    """Channel → its account's id on the platform."""
    files_are_gone: bool
    """With them went the proof that whoever was killed is gone."""
    did: Counter[str] = field(default_factory=Counter)
    locked: set[int] = field(default_factory=set)
    """Doubts about whose sender nothing will be proved: nobody may call the post absent."""
    _stack: ExitStack = field(default_factory=ExitStack)
    _open: bootstrap.App | None = None

    def act(self) -> None:
        """Decide what asks for a decision now."""
        try:
            app = self._open or self._sit_down()
            self._quarantined(app)
            self._doubted(app)
        except AWAY:
            self.leave()

    def leave(self) -> None:
        """Close the desk."""
        with contextlib.suppress(*AWAY):
            self._stack.close()
        self._open = None

    def _sit_down(self) -> bootstrap.App:
        database = self._stack.enter_context(
            Database.open(
                self.settings, Role.APP, application_name="operator", pool_size=2, workspace=EVERY
            )
        )
        self._open = self._stack.enter_context(bootstrap.open_app(self.settings, database))
        return self._open

    def _quarantined(self, app: bootstrap.App) -> None:
        with app.database.engine.begin() as conn:
            standing = quarantine.standing(conn)
        held: dict[int, list[SuspectRow]] = defaultdict(list)
        for row in standing.jobs:
            held[row.channel_id].append(row)
        for rows in held.values():
            if not any(row.asked_at is not None for row in rows):
                continue
            log = sandbox_log.read(self.page)
            there = [row for row in rows if self._ids(log, row.key, row.channel_id)]
            asked = [row for row in there if row.asked_at is not None]
            for row in asked:
                self._bind(app, row, self._ids(log, row.key, row.channel_id)[-1])
            if not there and not log.promised:
                self._release(app, rows[0])

    def _bind(self, app: bootstrap.App, row: SuspectRow, post: str) -> None:
        given = re.sub("_(?=[0-9]+$)", "/", post) if row.platform == "telegram" else post
        with self._tells("live"):
            quarantine.bind(app.database.engine, app.registry, row.id, given, _SIGNED)

    def _release(self, app: bootstrap.App, row: SuspectRow) -> None:
        with self._tells("released"), app.database.engine.begin() as conn:
            quarantine.release(conn, str(row.channel_id), _SIGNED, confirm=row.channel)

    def _doubted(self, app: bootstrap.App) -> None:
        engine, horizon = app.database.engine, timedelta(seconds=self.settings.horizon)
        with engine.begin() as conn:
            doubts = unknowns.listing(conn)
        for row in doubts:
            if row.asked_at is None:
                continue
            if row.channel_id not in self.pages:
                with self._tells("doubt: an alert"), engine.begin() as conn:
                    seen = unknowns.see(conn, app.registry, row.id, horizon=horizon)
                unknowns.drop(engine, seen, _SIGNED)
                continue
            log = sandbox_log.read(self.page)
            ids = self._ids(log, row.key, row.channel_id)
            if log.promised and not ids:
                continue
            with self._tells("doubt: live" if ids else "doubt: not there"):
                with engine.begin() as conn:
                    seen = unknowns.see(conn, app.registry, row.id, horizon=horizon)
                nobody = seen.doubt.incarnation is None
                if ids and seen.can_look:
                    unknowns.decide_live(
                        engine, app.registry, seen, ids[-1], _SIGNED, horizon=horizon
                    )
                elif ids:
                    unknowns.decide_attested(engine, seen, _SIGNED)
                elif seen.locked is not None:
                    self.locked |= {row.id} if nobody or self.files_are_gone else set()
                else:
                    is_late = row.useful_until is not None and row.useful_until <= row.now
                    again = None if is_late else Again(seen.channel.name)
                    unknowns.decide_absent(engine, seen, again, _SIGNED, horizon=horizon)

    def _ids(self, log: SandboxLog, key: str, channel_id: int) -> list[str]:
        page = self.pages.get(channel_id)
        return [
            post.id
            for post in log.posts
            if post.page == page and post.message.partition(" ")[0] == key
        ]

    @contextlib.contextmanager
    def _tells(self, what: str) -> Iterator[None]:
        try:
            yield
        except PublisherError as error:
            self.did[f"{what}: {error.code}"] += 1
        else:
            self.did[what] += 1
