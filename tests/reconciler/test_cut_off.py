"""The database connection ends before or just after each statement: nothing is doubled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import psycopg
import pytest

from publisher.engine import ledger
from publisher.engine.evidence import Evidence, Found, Inconclusive
from publisher.engine.job import State
from tests.engine.ground import Driver, Ground, Placed
from tests.reconciler.desk import (
    ATOMIC,
    Desk,
    bound,
    candidate,
    cut,
    row,
    verdicts,
)

S = State
FOUND = Found("501")
TWO = Inconclusive("two alike", (candidate("1"), candidate("2")))
NOTHING = Inconclusive("nothing", clean=True)
STATEMENTS = 23
"""More than any round has; what is not reached is not cut off."""
JUDGED = range(8, STATEMENTS - 5)
"""What a round does after its look, until the quarantine; all rounds are alike elsewhere."""


@dataclass
class Knife:
    """Ends a connection at its ``nth`` statement; commits count as statements."""

    ground: Ground
    nth: int
    after: bool
    seen: list[str] = field(default_factory=list)
    has_cut: bool = False

    def on(self, conn: Driver) -> Driver:
        knife, numbers = self, count(1)

        class Cursor(psycopg.Cursor[Any]):
            def execute(self, query: Any, *args: Any, **kwargs: Any) -> Cursor:  # noqa: ANN401
                number = next(numbers)
                knife.before(conn, number, str(query))
                super().execute(query, *args, **kwargs)
                knife.afterwards(conn, number)
                return self

        def command(text: bytes, *args: Any) -> Iterator[Any]:  # noqa: ANN401
            number = next(numbers)
            knife.before(conn, number, text.decode())
            yield from plain(text, *args)
            knife.afterwards(conn, number)

        plain = conn._exec_command
        conn.cursor_factory = Cursor
        conn._exec_command = command  # type: ignore[method-assign, assignment]
        return conn

    def before(self, conn: Driver, number: int, query: str) -> None:
        self.seen.append(" ".join(query.split())[:40])
        if number == self.nth and not self.after:
            self.has_cut = True
            cut(self.ground, conn)

    def afterwards(self, conn: Driver, number: int) -> None:
        """It was done, and nobody hears of it."""
        if number == self.nth and self.after:
            self.has_cut = True
            cut(self.ground, conn)
            conn.close()
            message = "the answer was lost"
            raise psycopg.OperationalError(message)


def tell(conn: Driver, doubt: ledger.Doubt, reason: str) -> None:
    """As alerts are raised: a row, in the transaction that asks."""
    ledger.tell(conn, doubt.job_id, "asked", who="test", attempt=1, detail={"why": reason})


def play(desk: Desk, job: Placed, seen: Evidence, knife: Knife) -> None:
    """One round that is cut off, then rounds until nothing is due, as the loop would."""
    desk.platform.look = lambda _query: seen  # type: ignore[method-assign, assignment]
    reconciler = desk.reconciler(told=tell)
    with knife.on(desk.ground.engine.connect_driver()) as conn:
        try:
            reconciler.once(conn, desk.pool)
        except psycopg.OperationalError:
            assert knife.has_cut
    # A claim whose answer was lost is held by nobody until its lease is over.
    desk.ground.sql(
        "UPDATE doubts SET lease_until = now() - interval '1 s'"
        " WHERE job_id = %s AND look_token IS NOT NULL AND NOT look_token = ANY(%s::uuid[])",
        job.id,
        list(reconciler._held.values()),
    )
    while reconciler.once(desk.conn, desk.pool):
        pass


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("nth", range(1, STATEMENTS + 1))
def test_found(desk: Desk, nth: int, after: bool) -> None:  # noqa: FBT001
    job = desk.lane.put(S.UNKNOWN)
    play(desk, job, FOUND, Knife(desk.ground, nth, after))
    assert desk.state(job) is S.PUBLISHED
    assert bound(desk.ground, job) == ["501"]
    assert [told["decision"] for told in verdicts(desk.ground, job)] == ["live"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("nth", JUDGED)
def test_repeated(desk: Desk, nth: int, after: bool) -> None:  # noqa: FBT001
    desk.platform.can = ATOMIC
    job = desk.lane.put(S.UNKNOWN)
    play(desk, job, NOTHING, Knife(desk.ground, nth, after))
    assert desk.state(job) is S.SCHEDULED
    assert [told["decision"] for told in verdicts(desk.ground, job)] == ["repeat"]
    assert desk.lane.claimed(job.id).attempts == 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("nth", JUDGED)
def test_asked(desk: Desk, nth: int, after: bool) -> None:  # noqa: FBT001
    job = desk.lane.put(S.UNKNOWN)
    desk.ground.sql("UPDATE doubts SET looks = 3 WHERE job_id = %s", job.id)
    play(desk, job, TWO, Knife(desk.ground, nth, after))
    kept = row(desk.ground, job)
    assert (kept["looks"], kept["next_look_at"], kept["look_token"]) == (4, None, None)
    assert kept["asked_reason"] == "2 posts on the page could be it"
    assert [event["event"] for event in desk.ground.events(job.id)] == ["asked"]


def test_the_knife_reaches_every_statement_of_a_round(desk: Desk) -> None:
    job = desk.lane.put(S.UNKNOWN)
    knife = Knife(desk.ground, STATEMENTS + 1, after=False)
    play(desk, job, FOUND, knife)
    assert not knife.has_cut
    assert len(knife.seen) <= STATEMENTS, knife.seen
    words = " ".join(knife.seen)
    for statement in (
        "WITH picked",
        "INSERT INTO looks",
        "INSERT INTO publisher.verdicts",
        "COMMIT",
    ):
        assert statement in words
