"""``publisher rehearse smoke`` and ``rehearse clean``, where they are about a real page."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Annotated

import typer

from publisher.cli import screen, session
from publisher.cli.exits import Exit
from publisher.cli.screen import Column
from publisher.engine.job import public_id
from publisher.rehearsal import real
from publisher.rehearsal.real import Ask, CleanResult, LeftBehind, Posted, Question, SmokeResult
from publisher.words import _, many

Channel = Annotated[
    str,
    typer.Option(
        "--channel",
        metavar="CHANNEL",
        help=_("Name or id of a page where it was allowed."),
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help=_("One JSON object, when it is over."))]


def smoke(
    *,
    channel: Channel,
    posts: Annotated[int, typer.Option(min=1, max=20, help=_("How many posts."))] = 3,
    run: Annotated[
        str,
        typer.Option(
            metavar="NAME", help=_("How its posts are marked; a number, unset."), show_default=False
        ),
    ] = "",
    json: Json = False,
) -> None:
    """Exit 1 when a promise was broken or a post is left behind, 3 when too little was shown."""
    settings = session.settings()
    with session.database():  # says what to run where the tables are not this release's
        pass
    name = run or real.next_run(settings)
    screen.note(_("Rehearsal {run} on {channel}").format(run=name, channel=channel))
    with _ends_in_order():
        result = real.smoke(
            settings, channel, name, posts, _say, who=session.who(), ask=_asks(json=json)
        )
    if json:
        screen.emit([_smoke_as_json(result)])
    else:
        screen.say(*(screen.visible(line) for line in real.shown(result)))
        _show_left(result.left)
        if result.left:
            screen.say_next("publisher rehearse clean")
        else:
            screen.say_next("publisher jobs list --queue rehearsal")
    if result.exit_code:
        raise typer.Exit(result.exit_code)


def clean(channel: str | None, *, json: bool = False) -> None:
    """Delete what rehearsals left on one page, or on all; exit 1 when something stays."""
    settings = session.settings()
    with session.database():
        pass
    with _ends_in_order():
        result = real.clean(settings, channel, _say, who=session.who(), ask=_asks(json=json))
    if json:
        screen.emit([_clean_as_json(result)])
    else:
        _tell_clean(result)
    if result.left:
        raise typer.Exit(Exit.NOT_AS_WISHED)


def _tell_clean(result: CleanResult) -> None:
    if not result.removed and not result.left:
        screen.say(_("No rehearsal left anything on a page."))
    else:
        screen.say(
            many("{n} post is gone", "{n} posts are gone", len(result.removed))
            + " · "
            + _("{n} left behind").format(n=len(result.left))
        )
    _show_left(result.left)
    screen.say_next("publisher rehearse clean" if result.left else "publisher channels list")


def _show_left(left: Sequence[LeftBehind]) -> None:
    if not left:
        return
    screen.show_table(
        [
            Column(_("LEFT BEHIND"), whole=True),
            Column(_("CHANNEL")),
            Column(_("WHERE"), whole=True),
            Column(_("WHY")),
            Column(_("THEN")),
        ],
        ([one.mark, one.channel, one.where, one.why, one.then] for one in left),
    )


def _say(line: str) -> None:
    screen.note(screen.visible(line))


def _asks(*, json: bool) -> Ask | None:
    """Who answers for what the platform shows nobody: whoever sits at the terminal."""
    return None if json or not sys.stdin.isatty() else _ask


def _ask(question: Question, mark: str, where: str) -> bool:
    words = {
        Question.IS_IT_THERE: _("Look at {where}. Is there a post that begins with {mark}?"),
        Question.IS_IT_DELETED: _("Delete {mark} at {where} by hand. Is it deleted?"),
    }[question]
    return typer.confirm(words.format(where=screen.visible(where), mark=mark), default=False)


@contextmanager
def _ends_in_order() -> Iterator[None]:
    """A SIGTERM ends it as Ctrl-C does: what was published is taken down first."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _smoke_as_json(result: SmokeResult) -> dict[str, object]:
    return {
        "run": result.run,
        "channel": result.channel,
        "exit_code": result.exit_code,
        "faults": list(result.faults),
        "unproved": list(result.unproved),
        "notes": list(result.notes),
        "posts": [_posted_as_json(one) for one in result.posted],
        **_clean_as_json(CleanResult(result.removed, result.left)),
    }


def _posted_as_json(one: Posted) -> dict[str, object]:
    return {
        "job": public_id(one.job_id),
        "mark": one.mark,
        "state": str(one.state),
        "attempts": one.attempts,
        "worker_killed": one.killed,
        "on_page_once": one.once,
        "remote_id": one.remote_id,
        "permalink": one.permalink,
    }


def _clean_as_json(result: CleanResult) -> dict[str, object]:
    return {
        "removed": [
            {
                "job": public_id(one.job_id),
                "channel": one.channel,
                "mark": one.mark,
                "how": str(one.how),
                "remote_id": one.remote_id,
            }
            for one in result.removed
        ],
        "left": [
            {
                "job": public_id(one.job_id),
                "channel": one.channel,
                "mark": one.mark,
                "where": one.where,
                "why": one.why,
                "then": one.then,
            }
            for one in result.left
        ],
    }
