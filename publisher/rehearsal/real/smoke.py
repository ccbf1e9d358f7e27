"""A few marked posts on a real page, one of them through a worker that is killed in its middle.

Every part is the product's own: jobs by ``ledger.enqueue``, worker and reconciler as processes,
the look of the platform's adapter. Then everything is taken down again.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.db.walls import EVERY
from publisher.editorial import channel_events, channels, rehearsals
from publisher.editorial.channel_events import Event
from publisher.engine import ledger, queries
from publisher.engine.errors import Conflict
from publisher.engine.job import REHEARSAL, Channel, NewJob, State, public_id, rehearsal_key
from publisher.rehearsal.errors import SetUpError
from publisher.rehearsal.real import checks, processes, settling
from publisher.rehearsal.real.clean import sweep
from publisher.rehearsal.real.ground import (
    WHO,
    Ask,
    Ground,
    Patience,
    Say,
    alone_on,
    content,
    find,
    is_over,
    mark,
    opened,
)
from publisher.rehearsal.real.results import CleanResult, SmokeResult
from publisher.words import _, many

POSTS: Final = 3
_MOST: Final = 20
_RUN: Final = re.compile(r"[A-Za-z0-9_.-]{1,40}")
_USEFUL: Final = timedelta(minutes=15)
"""What a crashed rehearsal left unsent is not sent a day later."""
_POLL: Final = 0.1


def smoke(  # noqa: PLR0913 - each is named at its one call
    settings: Settings,
    channel: str,
    run: str,
    count: int = POSTS,
    say: Say = lambda _line: None,
    *,
    who: str = WHO,
    ask: Ask | None = None,
    patience: Patience | None = None,
) -> SmokeResult:
    """Publish ``count`` posts of rehearsal ``run`` on ``channel`` (name or id), and delete them.

    ``ask`` answers for the page where its platform shows nothing; None: nobody is there. Raises
    ``Conflict`` (``rehearsal-not-allowed``, ``real-posts-due``, ``rehearsal-under-way``,
    ``clean-first``), ``SetUpError`` for a page that cannot be used or cleaned, ``NotFound``,
    ``DatabaseError``: nothing was published then.
    """
    if not _RUN.fullmatch(run):
        message = _("A run is named by letters, digits and _.- alone, not {run!r}.")
        raise SetUpError(message.format(run=run))
    if not 1 <= count <= _MOST:
        raise SetUpError(_("Give 1 to {most} posts.").format(most=_MOST))
    with opened(settings, say, who=who, ask=ask, patience=patience) as ground:
        found = find(ground, channel)
        with alone_on(ground, found):
            _require_fit(ground, found, run)
            return _run(ground, found, run, count)


def next_run(settings: Settings) -> str:
    """A number that no rehearsal on the deployment's pages has had. Raises ``DatabaseError``."""
    with (
        Database.open(
            settings, Role.APP, application_name="publisher rehearse", workspace=EVERY
        ) as database,
        database.engine.begin() as conn,
    ):
        runs = {job.run for job in queries.rehearsal_jobs(conn)}
    return str(max((int(run) for run in runs if run.isascii() and run.isdigit()), default=0) + 1)


def _require_fit(ground: Ground, channel: Channel, run: str) -> None:
    with ground.database.engine.begin() as conn:
        rehearsals.admit(conn, channel)
        at = next(one for one in channels.listing(conn) if one.channel.id == channel.id)
    if not at.is_open:
        message = _("{name} takes no posts just now. Nothing was published. See: {command}")
        command = f"publisher channels show {channel.id}"
        raise SetUpError(message.format(name=channel.name, command=command))
    if any(not is_over(job) for job in ground.jobs(channel)):
        message = _(
            "An earlier rehearsal left posts on {name}. Nothing was published. Clean up first:"
            " publisher rehearse clean {id}"
        )
        raise Conflict(message.format(name=channel.name, id=channel.id), code="clean-first")
    if ground.jobs(channel, run):
        message = _("Rehearsal {run} was on {name} before. Nothing was published. Name another.")
        raise Conflict(message.format(run=run, name=channel.name), code="run-used")
    if not ground.adapter(channel).capabilities(content(run, 1)).can_delete:
        message = _("Nothing can be deleted on {platform}, so nothing is rehearsed there.")
        raise SetUpError(message.format(platform=channel.platform))
    health = ground.adapter(channel).check(channel)
    if not health.usable:
        message = _("{name} cannot be used: {why} Nothing was published.")
        raise SetUpError(message.format(name=channel.name, why=health.detail))


def _run(ground: Ground, channel: Channel, run: str, count: int) -> SmokeResult:
    with ground.database.engine.begin() as conn:
        channel_events.tell(conn, channel.id, Event.REHEARSED, who=ground.who, run=run)
    unproved: list[str] = []
    try:
        unproved += _publish(ground, channel, run, count)
        checked = [checks.check(ground, channel, job) for job in ground.jobs(channel, run)]
    finally:
        # Whatever went wrong, also Ctrl-C: what was published is taken down.
        swept = sweep(ground, channel, run, asks=False)
    return _result(channel, run, checked, swept, unproved)


def _result(
    channel: Channel,
    run: str,
    checked: Sequence[checks.Checked],
    swept: CleanResult,
    unproved: Sequence[str],
) -> SmokeResult:
    return SmokeResult(
        run=run,
        channel=channel.name,
        posted=tuple(one.posted for one in checked),
        removed=swept.removed,
        left=swept.left,
        faults=tuple(one.fault for one in checked if one.fault),
        unproved=(*unproved, *(one.unproved for one in checked if one.unproved)),
        notes=tuple(one.note for one in checked if one.note),
    )


def _publish(ground: Ground, channel: Channel, run: str, count: int) -> list[str]:
    """Publish all of them, the last one through a worker that dies; what could not be done."""
    if count > 1:
        _enqueue(ground, channel, run, range(1, count))
        ground.say(many("Publishing {n} post …", "Publishing {n} posts …", count - 1))
        with processes.worker(ground.settings) as worker:
            _await_worker(ground, channel, run, worker)
    if not all(job.row.state is State.PUBLISHED for job in ground.jobs(channel, run)):
        # With the page itself in doubt, one more on it shows nothing.
        return [_("no worker was killed in the middle: the posts before were not published")]
    _enqueue(ground, channel, run, [count])
    ground.say(_("Publishing {mark}, and killing its worker …").format(mark=mark(run, count)))
    unproved = []
    if not _killed(ground, channel, run):
        unproved.append(_("no worker was killed in the middle: its send did not come that far"))
    ground.say(_("Looking for it on the page …"))
    # A worker too: where the platform's key makes a repeat safe, it is repeated.
    with processes.worker(ground.settings), processes.reconciler(ground.settings):
        settling.await_ends(ground, channel, run, ground.patience.settle)
    settling.ask(ground, channel, run)
    return unproved


def _enqueue(ground: Ground, channel: Channel, run: str, numbers: Sequence[int]) -> None:
    """Add jobs, unless a real post is due by now: asked in the same transaction.

    They belong to no post of an editor's and wait in a queue that only rehearsals serve.
    """
    adapter = ground.adapter(channel)
    with ground.database.engine.begin() as conn:
        rehearsals.admit(conn, channel)
        at = queries.clock(conn)
        new = []
        for number in numbers:
            key = rehearsal_key(run, number, channel.id, at)
            new.append(
                NewJob(
                    key=key,
                    kind="publish",
                    queue=REHEARSAL,
                    channel_id=channel.id,
                    content=content(run, number),
                    run_at=at,
                    useful_until=at + _USEFUL,
                    platform_key=adapter.platform_key(key, at),
                )
            )
        ledger.enqueue(conn, new)


def _await_worker(ground: Ground, channel: Channel, run: str, worker: processes.Process) -> None:
    until = time.monotonic() + ground.patience.publish
    while any(settling.is_open(job) for job in ground.jobs(channel, run)):
        _require_alive(worker)
        if time.monotonic() > until:
            return
        time.sleep(_POLL)


def _killed(ground: Ground, channel: Channel, run: str) -> bool:
    """Run the worker that dies; whether it died in the middle of the send."""
    until = time.monotonic() + ground.patience.publish
    with processes.victim(ground.settings) as worker:
        while worker.has_ended() is None and time.monotonic() < until:
            if not any(settling.is_open(job) for job in ground.jobs(channel, run)):
                return False
            time.sleep(_POLL)
        if worker.has_ended() == -signal.SIGKILL:
            return True
        _require_alive(worker)
    return False


def _require_alive(worker: processes.Process) -> None:
    code = worker.has_ended()
    if code is None:
        return
    message = _("The worker ended by itself (exit code {code}): {said}")
    raise SetUpError(message.format(code=code, said=worker.said()))


def shown(result: SmokeResult) -> list[str]:
    """The result as lines for a terminal: what was seen, then what is wrong, then what is left."""
    lines = [
        " · ".join(
            [
                many("{n} post on {name}", "{n} posts on {name}", len(result.posted),
                     name=result.channel),
                many("{n} deleted again", "{n} deleted again", len(result.removed)),
                _("{n} left behind").format(n=len(result.left)),
            ]
        )
    ]  # fmt: skip
    for one in result.posted:
        seen = {True: _("once"), False: _("not shown"), None: _("cannot be looked up")}[one.once]
        killed = f" · {_('its worker was killed')}" if one.killed else ""
        place = one.permalink or one.remote_id or ""
        name = public_id(one.job_id)
        lines.append(f"  {name}  {one.mark}  {one.state} · {seen}{killed}  {place}".rstrip())
    lines += [_("Broken: {what}").format(what=what) for what in result.faults]
    lines += [_("Not shown: {what}").format(what=what) for what in result.unproved]
    lines += [_("Note: {what}").format(what=what) for what in result.notes]
    return lines
